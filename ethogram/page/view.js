// The controls around the picture, events that come while the page is open, and the start.

function watchControls() {
  const on = (id, name, act) => byId(id).addEventListener(name, act);
  on("zoom-in", "click", () => zoomBy(1 / KEY_ZOOM));
  on("zoom-out", "click", () => zoomBy(KEY_ZOOM));
  on("zoom-fit", "click", fit);
  on("fold-time", "click", () => {
    view.fold = !view.fold;
    view.foldChosen = true;
    refreshTree(true);
  });
  on("open-all", "click", () => {
    view.openAll = byId("open-all").getAttribute("aria-pressed") !== "true";
    view.opened.clear();
    layOut();
  });
  on("show-plot", "click", () => showTab("plot"));
  on("show-table", "click", () => showTab("table"));
  on("skip", "click", (event) => {
    event.preventDefault();
    showTab("table");
    byId("table-view").focus();
  });
  on("page-before", "click", () => showTable(view.page - 1));
  on("page-after", "click", () => showTable(view.page + 1));
  on("detail-close", "click", hideDetail);
  on("detail-before", "click", () => step(-1));
  on("detail-after", "click", () => step(1));
  on("search", "input", () => { search(byId("search").value); fillList(); });
  on("search", "keydown", (event) => { if (event.key === "Enter") nextHit(event.shiftKey ? -1 : 1); });
  on("hit-before", "click", () => nextHit(-1));
  on("hit-after", "click", () => nextHit(1));
  on("list-filter", "input", fillList);
  on("list-toggle", "click", () => {
    const open = document.body.classList.toggle("list-open");
    byId("list-toggle").setAttribute("aria-expanded", String(open));
    if (open) byId("list-filter").focus();
  });
  on("theme", "change", (event) => {
    document.documentElement.dataset.theme = event.target.value;
    recolour();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", recolour);
  new ResizeObserver(() => {
    if (view.narrow !== byId("main").clientWidth < NARROW) layOut();
    else {
      measure();
      draw();
    }
  }).observe(byId("frame"));
  addEventListener("beforeprint", () => {
    view.printing = true;
    document.documentElement.classList.add("printing");
    recolour();
    layOut();
    byId("frame").style.height = `${view.height}px`;
    drawNow();
  });
  addEventListener("afterprint", () => {
    view.printing = false;
    document.documentElement.classList.remove("printing");
    byId("frame").style.height = "";
    recolour();
    layOut();
  });
}

function recolour() {
  view.colours = readColours();
  draw();
  drawLegend();
}

function drawLegend() {
  const ratio = window.devicePixelRatio || 1;
  byId("legend-list").replaceChildren(...LEGEND.map(([shape, tone, words]) => {
    const canvas = element("canvas", { width: 20 * ratio, height: 20 * ratio, "aria-hidden": "true" });
    const context = canvas.getContext("2d");
    context.scale(ratio, ratio);
    drawMark(context, { shape, tone }, 10, 10, 7, view.colours);
    return element("li", {}, canvas, words);
  }));
}

function followRuns() {
  const live = byId("live");
  live.hidden = false;
  const say = (words, tone) => { live.textContent = words; live.className = tone; };
  say("connecting", "plain");
  const source = new EventSource(state.live.events);
  source.onopen = () => say("live", "good");
  source.onerror = () => say("connection lost, trying again", "warn");
  source.addEventListener("reset", () => location.reload());
  source.addEventListener("event", (message) => {
    const { overview, root, row } = JSON.parse(message.data);
    let run = state.runs.get(overview.runId);
    const fresh = !run || run.overview.parentRunId !== overview.parentRunId;
    if (run) run.overview = { ...overview, withChildren: run.overview.withChildren };
    else run = addRun(overview);
    addEvent(run, row);
    if (fresh) arrange();
    if (root && state.runs.has(root.runId)) state.runs.get(root.runId).overview.withChildren = root.withChildren;
    pending.add(run);
    if (pending.size === 1) setTimeout(takePending, 100);
  });
}

const pending = new Set();

// Events come in bursts: the picture is worked out once for each burst.
function takePending() {
  const concerned = [...pending].some((run) => run.root === view.root);
  pending.clear();
  if (!view.root || !state.roots.includes(view.root)) {
    const root = view.root ? view.root.root : firstRoot();
    if (root) chooseRoot(root);
  } else if (concerned) refreshTree(false);
  fillList();
  if (view.tab === "table" && concerned) showTable(view.page);
}

// The tree that says most: one with nested runs before one without, then the one with the most events.
function firstRoot() {
  let best = null, most = -1;
  for (const root of state.roots) {
    let events = root.children.length ? 1e9 : 0;
    walk(root, (run) => { events += run.events.length; });
    if (events > most) [best, most] = [root, events];
  }
  return best;
}

function rootFromAddress() {
  const wanted = new URLSearchParams(location.hash.slice(1)).get("run");
  const run = wanted === null ? undefined : state.runs.get(wanted);
  return run ? run.root : null;
}

async function start() {
  takeContent(await readContent());
  view.colours = readColours();
  watchPointer();
  watchKeys();
  watchControls();
  drawLegend();
  const root = rootFromAddress() || firstRoot();
  document.body.classList.toggle("one-root", state.roots.length <= 1 && !state.live);
  if (root) chooseRoot(root);
  else {
    byId("run-name").textContent = "No runs";
    fillList();
  }
  addEventListener("hashchange", () => {
    const chosen = rootFromAddress();
    if (chosen) chooseRoot(chosen);
  });
  if (state.live) followRuns();
  drawNow();
  document.documentElement.dataset.ready = "true";
}

start();
