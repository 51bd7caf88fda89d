"""The look of pages: readable on a phone, in the dark, and on paper."""

from __future__ import annotations

CSS = """
:root { --ink: #1d1f23; --soft: #5d6470; --paper: #fff; --card: #f5f6f8; --line: #d9dce1;
  --link: #005a9c; --up: 0, 114, 178; --down: 213, 94, 0; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e7e9ec; --soft: #a3abb8; --paper: #15171b; --card: #1f2228; --line: #3a3f48;
    --link: #7cc0f5; --up: 70, 160, 225; --down: 235, 125, 50; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 16px/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif; }
main { max-width: 74rem; margin: 0 auto; padding: 1.5rem 1.25rem 4rem; }
h1 { font-size: 1.9rem; line-height: 1.2; margin: .5rem 0 .75rem; }
h2 { font-size: 1.4rem; margin: 3rem 0 .5rem; padding-top: .75rem;
  border-top: 2px solid var(--line); }
h3 { font-size: 1.08rem; margin: 2rem 0 .4rem; }
p, ul { max-width: 46rem; }
li { margin: .3rem 0; }
a { color: var(--link); }
nav { display: flex; flex-wrap: wrap; gap: .3rem 1.2rem; padding: .5rem 0;
  border-bottom: 1px solid var(--line); }
.lead { font-size: 1.12rem; }
.soft, figcaption, caption { color: var(--soft); font-size: .875rem; }
.tiles { display: grid; grid-template-columns: repeat(auto-fit, minmax(10rem, 1fr)); gap: .75rem;
  margin: 1rem 0 1.25rem; }
.tile { background: var(--card); border-radius: .6rem; padding: .75rem .9rem; }
.tile b { display: block; font-size: 1.5rem; line-height: 1.2; }
.tile span { color: var(--soft); font-size: .875rem; line-height: 1.35; display: block; }
.scroll { overflow-x: auto; margin: .6rem 0 1rem; }
table { border-collapse: collapse; font-size: .875rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .3rem; }
th, td { padding: .3rem .6rem; text-align: right; white-space: nowrap; vertical-align: top; }
thead th { border-bottom: 1px solid var(--line); font-weight: 600; vertical-align: bottom; }
thead th.span { text-align: center; border-left: 1px solid var(--line); }
tbody th { text-align: left; font-weight: 500; position: sticky; left: 0;
  background: var(--paper); z-index: 1; }
thead th:first-child { text-align: left; position: sticky; left: 0; background: var(--paper);
  z-index: 2; }
tbody tr { border-bottom: 1px solid var(--line); }
tbody + tbody { border-top: 3px double var(--line); }
td.first { border-left: 1px solid var(--line); }
td small { color: var(--soft); font-size: .75rem; }
td .beside { display: block; color: var(--soft); font-size: .78rem; line-height: 1.25; }
.up1 { background: rgba(var(--up), .10); } .up2 { background: rgba(var(--up), .22); }
.up3 { background: rgba(var(--up), .38); } .down1 { background: rgba(var(--down), .10); }
.down2 { background: rgba(var(--down), .22); } .down3 { background: rgba(var(--down), .38); }
.key span { white-space: nowrap; padding: .1rem .45rem; border-radius: .25rem;
  margin-right: .15rem; }
figure { margin: 1rem 0 1.6rem; }
.picture { background: #fff; border-radius: .5rem; padding: .4rem; overflow-x: auto;
  border: 1px solid var(--line); }
.picture img { display: block; width: 100%; height: auto; margin: 0 auto; }
.narrow .picture { max-width: 40rem; } .middle .picture { max-width: 58rem; }
figcaption { margin-top: .4rem; max-width: 52rem; }
details { margin: .6rem 0; border: 1px solid var(--line); border-radius: .5rem;
  padding: .45rem .8rem; }
summary { cursor: pointer; font-weight: 500; }
dl { display: grid; grid-template-columns: minmax(6rem, max-content) 1fr; gap: .15rem .9rem;
  margin: .2rem 0; font-size: .875rem; }
dt { color: var(--soft); } dd { margin: 0; min-width: 0; overflow-wrap: anywhere; }
code, pre { font-family: ui-monospace, "SF Mono", Menlo, Consolas, monospace; font-size: .875rem; }
pre { background: var(--card); padding: .7rem .9rem; border-radius: .5rem; overflow-x: auto; }
@media (max-width: 640px) {
  main { padding: 1rem .9rem 3rem; } h1 { font-size: 1.5rem; }
  .tiles { grid-template-columns: 1fr 1fr; } .tile b { font-size: 1.25rem; }
  .wide .picture img { width: 780px; } .middle .picture img { width: 640px; }
  th, td { padding: .28rem .45rem; } dl { grid-template-columns: 1fr; } dd { margin-left: .9rem; }
  tbody th { white-space: normal; min-width: 6.2rem; } }
@media print {
  :root { --ink: #000; --soft: #444; --paper: #fff; --card: #f3f3f3; --line: #bbb;
    --up: 0, 114, 178; --down: 213, 94, 0; }
  body { font-size: 10pt; } nav { display: none; } main { max-width: none; padding: 0; }
  table { font-size: 6.8pt; } th, td { padding: .12rem .22rem; }
  td small, td .beside { font-size: 6pt; }
  .scroll, .picture { overflow: visible; } figure, tr, .tile { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  .up1, .up2, .up3, .down1, .down2, .down3, .tile { print-color-adjust: exact; } }
"""
