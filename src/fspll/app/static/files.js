// Save the result, then offer its files.
import { ask, find, home, say, sayError, watch } from "./common.js";

let asked = null;

function onStatus(status) {
  if (status.state !== "ready") return;
  const current = status.saved >= 0 && !status.updating;
  find("save").disabled = asked !== null;
  if (asked !== null && status.saved >= asked && !status.updating) {
    asked = null;
    find("save").disabled = false;
    say("Saved");
  }
  find("files").hidden = !(current && asked === null);
}

find("save").addEventListener("click", async () => {
  try {
    const status = await ask(`${home}api/save`, {});
    asked = status.version;
    find("save").disabled = true;
    say("Making the result anew …");
  } catch (error) { sayError(error); }
});

watch(onStatus);
