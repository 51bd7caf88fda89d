"""The look of a labeling report, beside what all pages share."""

from __future__ import annotations

# Colors of Okabe and Ito (2008), which people who confuse red and green tell apart; yellow is left
# out, since it vanishes on white, and black stands for ink.
CSS = """
:root { --k0: #0072b2; --k1: #d55e00; --k2: #009e73; --k3: #cc79a7; --k4: #e69f00; --k5: #56b4e9;
  --k6: #1d1f23; --warn: #b34700; --bar: rgba(0, 114, 178, .17); --rest: rgba(93, 100, 112, .14); }
@media (prefers-color-scheme: dark) {
  :root { --k0: #3d9be0; --k1: #f0782a; --k2: #1fc096; --k3: #e29bc4; --k4: #f0b43c;
    --k5: #8fd0f7; --k6: #e7e9ec; --warn: #ff9a57; --bar: rgba(86, 164, 230, .30);
    --rest: rgba(163, 171, 184, .18); } }
.name { overflow-wrap: anywhere; unicode-bidi: isolate; }
.warn { border-left: 4px solid var(--warn); padding: .1rem 0 .1rem .8rem; }
.why { padding-left: 1.1rem; } .why .soft { line-height: 1.4; }
tbody th { max-width: 22rem; white-space: normal; overflow-wrap: anywhere; }
.frame { display: flex; align-items: center; justify-content: center; width: 96px; height: 96px;
  background: var(--card); border-radius: .35rem; overflow: hidden; flex: none; }
.frame img { width: 100%; height: 100%; object-fit: contain; }
.frame img.pixels { image-rendering: pixelated; }
.frame.empty { color: var(--soft); font-size: .8rem; }
blockquote { margin: 0; padding: 0; font-size: .95rem; line-height: 1.4; overflow-wrap: anywhere;
  max-width: 46rem; }
.bars { list-style: none; margin: .25rem 0; padding: 0; width: 100%; max-width: 24rem; }
.bars li { display: flex; justify-content: space-between; gap: .5rem; margin: 2px 0;
  padding: 0 .4rem; border-radius: .25rem; font-size: .8rem; line-height: 1.5;
  background: linear-gradient(90deg, var(--rest) var(--share, 0%), transparent var(--share, 0%)); }
.bars li.chosen { font-weight: 650;
  background: linear-gradient(90deg, var(--bar) var(--share), transparent var(--share)); }
.bars li.more { color: var(--soft); }
.bars span { overflow-wrap: anywhere; min-width: 0; unicode-bidi: isolate; }
.bars i { font-style: normal; font-variant-numeric: tabular-nums; flex: none; }
.cards { list-style: none; margin: 1rem 0; padding: 0; display: grid; gap: .8rem; max-width: none; }
.cards.pictures { grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); }
.cards.texts { grid-template-columns: repeat(auto-fill, minmax(min(19rem, 100%), 1fr)); }
.cards > li { margin: 0; padding: .6rem; border: 1px solid var(--line); border-radius: .5rem;
  display: flex; flex-direction: column; gap: .3rem; }
.cards.pictures > li { align-items: center; }
.cards > li.open { border-color: var(--warn); }
.cards .name { color: var(--soft); font-size: .78rem; line-height: 1.3; }
.cards .bars { max-width: none; }
.cards small { color: var(--warn); font-size: .78rem; line-height: 1.35; }
.ask { margin: 1rem 0; padding: 0; list-style: none; counter-reset: ask; max-width: 60rem; }
.ask > li { display: flex; gap: .9rem; padding: .8rem 0; margin: 0;
  border-top: 1px solid var(--line); counter-increment: ask; }
.ask > li::before { content: counter(ask) "."; color: var(--soft); min-width: 1.6rem; }
.ask .what { flex: 1; min-width: 0; display: grid; gap: .2rem; align-content: start; }
.ask p { margin: 0; font-size: .9rem; }
.map { margin: .8rem 0 .4rem; border: 1px solid var(--line); border-radius: .5rem; }
.map svg { display: block; width: 100%; height: auto; }
.k0 { --mark: var(--k0); } .k1 { --mark: var(--k1); } .k2 { --mark: var(--k2); }
.k3 { --mark: var(--k3); } .k4 { --mark: var(--k4); } .k5 { --mark: var(--k5); }
.k6 { --mark: var(--k6); }
.points use { fill: var(--mark); fill-opacity: .75; stroke: var(--paper); stroke-width: .6; }
.points use.open { fill: var(--paper); stroke: var(--mark); stroke-width: 2; }
.points use:hover { stroke: var(--ink); stroke-width: 2; }
.trails polyline { fill: none; stroke: var(--mark); stroke-width: 2; stroke-dasharray: 1 4;
  stroke-linecap: round; }
.protos g, .names g { fill: var(--mark); stroke: var(--ink); stroke-width: 1;
  transition: transform .3s; }
.names text { fill: var(--ink); stroke: var(--paper); stroke-width: 4px; paint-order: stroke;
  stroke-linejoin: round; font-size: 15px; font-weight: 600; text-anchor: middle; }
.dim { opacity: .1; }
.legend { list-style: none; margin: .5rem 0; padding: 0; display: flex; flex-wrap: wrap;
  gap: .15rem .4rem; max-width: none; font-size: .875rem; }
.legend li { display: flex; align-items: center; gap: .35rem; margin: 0; padding: .1rem .5rem;
  border-radius: 1rem; border: 1px solid transparent; }
.legend li[role] { cursor: pointer; } .legend li.on { border-color: var(--ink); }
.legend svg { width: 1rem; height: 1rem; fill: var(--mark); flex: none; }
.legend span { overflow-wrap: anywhere; unicode-bidi: isolate; }
.legend i { color: var(--soft); font-style: normal; }
.steps { display: flex; align-items: center; gap: .8rem; margin-top: .8rem; max-width: 34rem; }
.steps[hidden] { display: none; }
.steps input { flex: 1; min-width: 0; accent-color: var(--link); }
.steps output { min-width: 5.5rem; }
.steps button { font: inherit; color: var(--ink); background: var(--card); min-width: 4.6rem;
  border: 1px solid var(--line); border-radius: .4rem; padding: .25rem .8rem; cursor: pointer; }
@media (prefers-reduced-motion: reduce) { .protos g, .names g { transition: none; } }
@media (max-width: 640px) {
  path { transform: scale(1.7); } .legend use { transform: scale(.6); }
  .names text { font-size: 25px; stroke-width: 6px; }
  .trails polyline { stroke-width: 3; }
  .cards.pictures { grid-template-columns: repeat(auto-fill, minmax(8.4rem, 1fr)); gap: .5rem; }
  .ask > li { gap: .6rem; } .ask > li::before { min-width: 1.2rem; }
  .ask .frame { width: 72px; height: 72px; } }
@media print {
  :root { --k0: #0072b2; --k1: #d55e00; --k2: #009e73; --k3: #cc79a7; --k4: #e69f00;
    --k5: #56b4e9; --k6: #000; --warn: #b34700; --bar: #cfe3f0; --rest: #e6e7ea; }
  .steps { display: none; } .cards > li, .ask > li, .map { break-inside: avoid; }
  .cards.pictures { grid-template-columns: repeat(6, 1fr); }
  .bars li, .map, .legend { print-color-adjust: exact; } }
"""
