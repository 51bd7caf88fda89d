// Files one by one to the server: each is the body of a request, so that none is held in memory.
const AT_ONCE = 3;

const named = (file) => `“${file.name}”`;

function limit(file, most) {
  const name = file.name.toLowerCase();
  if (name.endsWith(".zip") || name.endsWith(".npy")) return Number(most.requestBytes);
  return Number(file.type.startsWith("image/") ? most.pictureBytes : most.tableBytes);
}

function send(file, address, onBytes) {
  return new Promise((done) => {
    const request = new XMLHttpRequest();
    request.upload.addEventListener("progress", (event) => onBytes(event.loaded));
    request.addEventListener("load", () => {
      onBytes(file.size);
      if (request.status < 400) { done(""); return; }
      let sentence = request.responseText;
      try { sentence = JSON.parse(sentence).error; } catch { /* plain text */ }
      done(sentence || `${named(file)} was refused`);
    });
    request.addEventListener("error", () => done(`${named(file)} did not reach the server`));
    request.open("POST", `${address}?name=${encodeURIComponent(file.name)}`);
    request.setRequestHeader("Content-Type", "application/octet-stream");
    request.send(file);
  });
}

// Send files; resolves to the sentences about those that were refused.
// onSent is called with the number of files sent, of how many, the share of bytes, and a name.
export async function sendAll(files, address, most, onSent) {
  const waiting = files.filter((file) => !file.name.startsWith("."));
  const total = waiting.length;
  const bytes = waiting.reduce((sum, file) => sum + file.size, 0) || 1;
  const refused = [];
  let finished = 0;
  let sent = 0;
  const work = async () => {
    for (let file = waiting.shift(); file; file = waiting.shift()) {
      if (file.size > limit(file, most)) {
        refused.push(`${named(file)} is larger than the ${limit(file, most).toLocaleString()} bytes that are taken`);
      } else {
        let before = 0;
        const problem = await send(file, address, (loaded) => {
          sent += loaded - before;
          before = loaded;
          onSent(finished, total, sent / bytes, file.name);
        });
        if (problem) refused.push(problem);
      }
      finished += 1;
      onSent(finished, total, sent / bytes, file.name);
    }
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return refused;
}
