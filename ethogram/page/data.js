// What the page was given, and what is worked out from it once: runs, trees, events in order.

// Events that could not be dated stand where the event before them does.
const state = {
  runs: new Map(),     // id -> run
  roots: [],           // runs without a parent here, in the order of their starts
  made: "",
  live: null,
  cut: null,           // the length at which texts were cut, or null
};

async function readContent() {
  const given = JSON.parse(document.getElementById("content").textContent);
  if (given.deflated === undefined) return given;
  const bytes = Uint8Array.from(atob(given.deflated), (character) => character.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return JSON.parse(await new Response(stream).text());
}

function takeContent(given) {
  state.made = given.made;
  state.live = given.live;
  state.cut = given.cut;
  for (const { rows, ...overview } of given.runs) {
    const run = addRun(overview);
    for (const row of rows) addEvent(run, row);
  }
  arrange();
}

function addRun(overview) {
  const run = { overview, id: overview.runId, events: [], bySeq: new Map(), children: [], parent: null, depth: 0 };
  state.runs.set(run.id, run);
  return run;
}

function addEvent(run, [seq, type, at, ts, capturedAt, payload]) {
  if (run.bySeq.has(seq)) return null;
  const before = run.events.length ? run.events[run.events.length - 1].at : 0;
  const event = { run, seq, type, at: at === null ? before : at, dated: at !== null, ts, capturedAt, payload };
  run.bySeq.set(seq, event);
  run.events.push(event);
  event.mark = markOf(event);
  return event;
}

// The same rule as `ethogram runs`: a missing parent makes a root, and a circle is cut at its earliest run.
function arrange() {
  const runs = [...state.runs.values()].sort((a, b) => startOf(a) - startOf(b) || (a.id < b.id ? -1 : 1));
  for (const run of runs) Object.assign(run, { children: [], parent: null });
  const cut = new Set();
  const above = (run) => (run.overview.parentRunId === undefined ? undefined : state.runs.get(run.overview.parentRunId));
  const inCircle = (run) => {
    const seen = new Set();
    for (let at = run; at && !seen.has(at) && !cut.has(at); ) {
      seen.add(at);
      at = above(at);
      if (at === run) return true;
    }
    return false;
  };
  state.roots = [];
  for (const run of runs) {
    const parent = above(run);
    if (parent && inCircle(run)) cut.add(run);
    else if (parent) {
      run.parent = parent;
      parent.children.push(run);
      continue;
    }
    state.roots.push(run);
  }
  for (const root of state.roots) walk(root, (run, depth) => { run.depth = depth; run.root = root; });
}

function startOf(run) {
  return run.events.length ? run.events[0].at : Infinity;
}

function walk(root, visit) {
  const waiting = [[root, 0]];
  while (waiting.length) {
    const [run, depth] = waiting.pop();
    visit(run, depth);
    for (let index = run.children.length - 1; index >= 0; index--) waiting.push([run.children[index], depth + 1]);
  }
}

function treeEvents(root) {
  const events = [];
  walk(root, (run) => { for (const event of run.events) events.push(event); });
  return events.sort(byTime);
}

function byTime(a, b) {
  return a.at - b.at || (a.run === b.run ? a.seq - b.seq : a.run.id < b.run.id ? -1 : 1);
}

// From the first event to the last, over the run and all beneath it.
function spanOf(root) {
  let from = Infinity, to = -Infinity;
  walk(root, (run) => {
    for (const event of run.events) {
      if (event.at < from) from = event.at;
      if (event.at > to) to = event.at;
    }
  });
  return from <= to ? [from, to] : [0, 0];
}

// How an event reads in a search: its type, its run and every text of its payload.
function haystackOf(event) {
  if (event.haystack === undefined) {
    event.haystack = `${event.type} ${event.run.id} ${JSON.stringify(event.payload)}`.toLowerCase();
  }
  return event.haystack;
}

// Characters that order text anew, or do not print, would let a log rewrite what stands beside it.
function plain(text) {
  return String(text).replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]/g, "\ufffd");
}

function oneLine(text, longest) {
  const line = plain(text).replace(/\s+/g, " ").trim();
  return line.length > longest ? `${line.slice(0, longest - 1)}…` : line;
}

function element(name, properties = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(properties)) {
    if (value === undefined || value === null) continue;
    if (key === "class") made.className = value;
    else if (key === "text") made.textContent = value;
    else if (key.startsWith("on")) made.addEventListener(key.slice(2), value);
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}

function byId(id) {
  return document.getElementById(id);
}
