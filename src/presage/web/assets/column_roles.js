// Browser side of the panel of column roles. The store `roles` holds the roles that differ from the guess; the column of
// interventions is the value of the drop-down `interventions`, so that both always agree.
(function () {
  "use strict";

  const set = (id, props) => window.dash_clientside.set_props(id, props);
  window.dash_clientside = window.dash_clientside || {};
  const presage = (window.dash_clientside.presage = window.dash_clientside.presage || {});
  const VARIABLES = ["continuous", "count", "binary", "ordinal", "nominal"];
  let roles = {};
  let targets = "none";

  const selects = () => [...document.querySelectorAll("select[data-column]")];
  const plural = (count, one, many) => `${count} ${count === 1 ? one : many}`;

  function choose(select) {
    const { column, guess, order } = select.dataset;
    const mine = `column:${column}`;
    const next = { ...roles };
    delete next[column];
    if (select.value === "intervention") set("interventions", { value: mine });
    else {
      if (targets === mine) set("interventions", { value: "none" });
      if (select.value === "ordinal" && order && guess !== "ordinal") next[column] = order;
      else if (select.value && select.value !== guess) next[column] = select.value;
    }
    set("roles", { data: next });
  }

  function show() {
    const counts = { variable: 0, environment: 0, intervention: 0, ignored: 0, open: 0 };
    for (const select of selects()) {
      const { column, guess } = select.dataset;
      const given = roles[column];
      const role = targets === `column:${column}` ? "intervention" : given === undefined ? guess : given.includes("<") ? "ordinal" : given;
      select.value = role;
      counts[role === "" ? "open" : VARIABLES.includes(role) ? "variable" : role] += 1;
      const row = select.closest("tr");
      const proposed = role === "intervention" && select.dataset.proposed !== "";
      row.classList.toggle("changed", role !== guess && !proposed);
      row.classList.toggle("ignored", role === "ignored");
      row.classList.toggle("undecided", role === "");
      showReason(row.querySelector("[data-why]"), role, proposed ? role : guess, given, proposed);
    }
    const place = document.getElementById("column-summary");
    if (!place) return;
    const parts = [plural(counts.variable, "variable", "variables")];
    if (counts.intervention) parts.push("intervention targets in a column");
    if (counts.environment) parts.push(plural(counts.environment, "environment", "environments"));
    if (counts.ignored) parts.push(plural(counts.ignored, "ignored column", "ignored columns"));
    if (counts.open) parts.push(`${counts.open} to decide`);
    place.textContent = parts.join(", ");
  }

  // The reason of the guess, or what was chosen; an ordinal column of text also shows its levels, to be put in order.
  function showReason(cell, role, guess, given, proposed) {
    const levels = given && given.includes("<") ? given : "";
    let text = proposed ? "it names variables, so it may hold the targets of interventions" : cell.dataset.why;
    if (role !== guess) text = guess ? `as you chose (guess: ${guess}, ${cell.dataset.why})` : "as you chose";
    const label = cell.querySelector("label");
    if (!levels) { if (cell.textContent !== text || label) cell.textContent = text; return; }
    if (label) { label.querySelector("input").value = levels; return; }
    const input = document.createElement("input");
    input.type = "text";
    input.value = levels;
    const made = document.createElement("label");
    made.className = "levels";
    made.append("levels from low to high", input);
    cell.replaceChildren(made);
  }

  document.addEventListener("change", (event) => {
    const at = event.target;
    if (at.matches && at.matches("select[data-column]")) choose(at);
    else if (at.matches && at.matches(".levels input")) {
      const select = at.closest("tr").querySelector("select");
      set("roles", { data: { ...roles, [select.dataset.column]: at.value.includes("<") ? at.value : "ordinal" } });
    }
  });
  document.addEventListener("click", (event) => {
    if (!event.target.closest || !event.target.closest("#show-columns")) return;
    document.getElementById("columns-place").scrollIntoView({ block: "start", behavior: "smooth" });
  });

  presage.roles = (given, _columns, choice) => {
    roles = given || {};
    targets = choice;
    setTimeout(show, 0);
    return window.dash_clientside.no_update;
  };
})();
