// The line of facts above the picture, and the list of runs beside it.

function fillHead() {
  const root = view.root, overview = root.overview;
  byId("run-name").textContent = titleOf(root);
  byId("run-name").title = plain(root.id);
  const outcome = byId("run-outcome");
  outcome.textContent = outcomeOf(root);
  outcome.className = `badge ${outcomeTone(root)}`;
  const [from, to] = spanOf(root);
  const says = [overview.kind, overview.actor, overview.harness, overview.model].filter(Boolean).map((each) => oneLine(each, 60));
  byId("run-says").textContent = `${says.join(" · ")}${says.length ? " · " : ""}${root.events.length ? `${dateTime(from)} UTC · ${duration(to - from)}` : "no events"}`;
  const glance = glanceOf(root);
  const fact = (number, words, tone) => element("li", { class: tone || "" }, element("b", { text: number }), ` ${words}`);
  const facts = [fact(glance.events.toLocaleString("en"), glance.runs > 1 ? `events in ${glance.runs.toLocaleString("en")} runs` : "events")];
  if (glance.rounds.size) facts.push(fact(glance.rounds.size, glance.rounds.size === 1 ? "round" : "rounds"));
  const pair = ([good, bad], name, yes, no) => {
    if (!good && !bad) return;
    const item = element("li", { "aria-label": `${name}: ${good} ${yes}, ${bad} ${no}` });
    if (good) item.append(element("b", { class: "good", text: `✓ ${good}` }), " ");
    if (bad) item.append(element("b", { class: "bad", text: `✕ ${bad}` }), " ");
    item.append(name);
    facts.push(item);
  };
  pair(glance.gates, "gates", "passed", "failed");
  pair(glance.reviews, "reviews", "approved", "asked for changes");
  if (glance.pauses) facts.push(fact(`‖ ${glance.pauses}`, glance.pauses === 1 ? "pause" : "pauses", "warn"));
  if (glance.human) facts.push(fact(`◆ ${glance.human}`, glance.human === 1 ? "human intervention" : "human interventions", "human"));
  if (glance.warnings) facts.push(fact(`▲ ${glance.warnings}`, glance.warnings === 1 ? "warning" : "warnings", "warn"));
  if (glance.tokens !== null) facts.push(fact(count(glance.tokens), "tokens"));
  if (glance.cost !== null) facts.push(fact(`${glance.atLeast ? "≥ " : ""}$${glance.cost.toFixed(4)}`, "cost"));
  byId("glance").replaceChildren(...facts);
  const notices = [];
  walk(root, (run) => { if (run.overview.fault) notices.push(`${plain(run.id)}: ${plain(run.overview.fault)}`); });
  if (overview.parentRunId !== undefined && !root.parent) notices.push(`Its parent is not here: ${oneLine(overview.parentRunId, 80)}`);
  if (state.cut !== null) notices.push(`Texts longer than ${state.cut} characters were cut to keep this page small; "ethogram show --full" prints them whole.`);
  byId("notice").hidden = !notices.length;
  byId("notice").textContent = notices.join(" · ");
}

function fillList() {
  const wanted = byId("list-filter").value.trim().toLowerCase();
  const fitting = state.roots.filter((root) => {
    if (!wanted) return true;
    let fits = false;
    walk(root, (run) => { fits ||= `${run.id} ${run.overview.kind} ${run.overview.actor} ${run.overview.model} ${outcomeOf(run)}`.toLowerCase().includes(wanted); });
    return fits;
  });
  const hitsIn = new Map();
  if (view.query) for (const event of allHits()) hitsIn.set(event.run.root, (hitsIn.get(event.run.root) || 0) + 1);
  const sorted = view.query ? fitting.slice().sort((a, b) => (hitsIn.get(b) || 0) - (hitsIn.get(a) || 0)) : fitting;
  const shown = sorted.slice(0, MOST_ROOTS);
  if (view.root && fitting.includes(view.root) && !shown.includes(view.root)) shown.push(view.root);
  byId("list-count").textContent = `${fitting.length.toLocaleString("en")} ${fitting.length === 1 ? "run" : "runs"}${fitting.length > MOST_ROOTS ? `, ${MOST_ROOTS} shown: filter to see others` : ""}`;
  byId("roots").replaceChildren(...shown.map((root) => {
    let runs = 0, events = 0;
    walk(root, (run) => { runs += 1; events += run.events.length; });
    const [from, to] = spanOf(root);
    const hits = hitsIn.get(root);
    const facts = [outcomeOf(root), root.events.length ? duration(to - from) : null, `${count(events)} events`, runs > 1 ? `${runs} runs` : null];
    const day = root.events.length ? `${dateTime(from).slice(5, 16)} · ` : "";
    return element("li", {}, element("button", { type: "button", "aria-current": root === view.root ? "true" : null, title: plain(root.id), onclick: () => { chooseRoot(root); closeList(); } },
      element("span", { class: `dot ${outcomeTone(root)}`, "aria-hidden": "true" }),
      element("span", { class: "who", text: titleOf(root) }),
      element("span", { class: "facts", text: `${hits ? `${hits} found · ` : ""}${day}${facts.filter(Boolean).join(" · ")}` })));
  }));
}

function closeList() {
  document.body.classList.remove("list-open");
  byId("list-toggle").setAttribute("aria-expanded", "false");
}
