// Browser side of the page: session, colours, messages, uploads with a check of their size, variables moved into tiers.
(function () {
  "use strict";

  const page = () => document.getElementById("page");
  const set = (id, props) => window.dash_clientside.set_props(id, props);
  const tell = (id, data) => set(id, { data: { ...data, at: Date.now() } });
  window.dash_clientside = window.dash_clientside || {};
  const presage = (window.dash_clientside.presage = window.dash_clientside.presage || {});

  // Session -----------------------------------------------------------------------------------------------------
  // The key is kept as long as the tab is open, so that reloading the page restores its state.
  function sessionKey() {
    let key = sessionStorage.getItem("presage-session");
    if (!key) {
      const bytes = crypto.getRandomValues(new Uint8Array(24));
      key = btoa(String.fromCharCode(...bytes)).replace(/\+/g, "-").replace(/\//g, "_");
      sessionStorage.setItem("presage-session", key);
    }
    return key;
  }
  presage.session = () => { applyTheme(theme()); setTimeout(reachTabs, 300); return sessionKey(); };

  // Tabs of dash are plain elements: add their role, their place in the tab order, and keyboard control.
  const tabs = () => [...document.querySelectorAll("#bring .tab")];
  const reachTabs = () => tabs().forEach((tab) => { tab.setAttribute("role", "tab"); tab.tabIndex = 0; });
  document.addEventListener("keydown", (event) => {
    const at = tabs().indexOf(event.target);
    if (at < 0) return;
    if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.target.click(); }
    const next = tabs()[at + (event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : NaN)];
    if (next) next.focus();
  });

  // Colours -----------------------------------------------------------------------------------------------------
  const dark = window.matchMedia("(prefers-color-scheme: dark)");
  const theme = () => localStorage.getItem("presage-theme") || (dark.matches ? "dark" : "light");
  function applyTheme(name) {
    document.documentElement.dataset.theme = name;
    const button = document.getElementById("theme-button");
    if (button) button.textContent = name === "dark" ? "Light" : "Dark";
    if (button) set("theme", { data: name });
  }
  document.documentElement.dataset.theme = theme();
  dark.addEventListener("change", () => applyTheme(theme()));

  // Clicks that need no server ------------------------------------------------------------------------------------
  document.addEventListener("click", (event) => {
    const at = (selector) => event.target.closest && event.target.closest(selector);
    if (at("#theme-button")) {
      const name = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
      localStorage.setItem("presage-theme", name);
      applyTheme(name);
    } else if (at("#use-recommended")) {
      set("model", { value: at("#use-recommended").dataset.model });
    } else if (at("#hide-card") || event.target.id === "card-dialog") {
      document.getElementById("card-dialog").close();
    }
  });

  // The card is a modal dialog of the browser: Escape closes it, and the page behind it is inert.
  const opened = new MutationObserver((changes) => {
    for (const { target } of changes) {
      const place = target.nodeType === 1 ? target : target.parentElement;
      const card = place && place.closest("#card");
      if (card && card.textContent.trim()) {
        const dialog = document.getElementById("card-dialog");
        if (!dialog.open && Date.now() - asked < 60000) dialog.showModal();
      }
      const alert = place && place.closest("[role=alert]");
      if (alert && alert.textContent.trim()) alert.scrollIntoView({ block: "nearest", behavior: "smooth" });
    }
  });
  let asked = 0;
  document.addEventListener("click", (event) => {
    if (!event.target.closest || !event.target.closest("#show-card")) return;
    asked = Date.now();
    const dialog = document.getElementById("card-dialog");
    if (document.getElementById("card").textContent.trim()) dialog.showModal();  // the same card as before
  }, true);
  opened.observe(document.documentElement, { childList: true, characterData: true, subtree: true });

  // Files -------------------------------------------------------------------------------------------------------
  function send(file, zone) {
    const limit = Number(page().dataset.limit);
    const role = zone.dataset.role;
    if (file.size > limit) {
      const size = (file.size / 2 ** 20).toFixed(0);
      tell("upload-event", {
        role,
        error: `the file ${file.name} has ${size} MB, but the limit is ${limit / 2 ** 20} MB; ` +
          "use fewer rows or columns, or the command line (presage discover), which has no limit.",
      });
      return;
    }
    const label = zone.querySelector("span");
    const before = label.textContent;
    zone.classList.add("busy");
    const request = new XMLHttpRequest();
    const query = new URLSearchParams({ session: sessionKey(), name: file.name, role });
    request.open("POST", `upload?${query}`);
    request.setRequestHeader("X-Presage", "upload");
    request.upload.onprogress = (event) => {
      label.textContent = event.loaded < event.total
        ? `sending, ${Math.round((100 * event.loaded) / event.total)} %` : "reading …";
    };
    request.onloadend = () => {
      zone.classList.remove("busy");
      label.textContent = before;
      let answer = { error: "The server did not answer; is it still running?" };
      try { answer = JSON.parse(request.responseText); } catch (error) { /* keep the sentence */ }
      tell("upload-event", { role, ...answer });
    };
    request.send(file);
  }

  document.addEventListener("click", (event) => {
    const zone = event.target.closest(".drop");
    if (!zone) return;
    const input = document.createElement("input");
    input.type = "file";
    input.onchange = () => input.files.length && send(input.files[0], zone);
    input.click();
  });
  for (const kind of ["dragover", "dragleave", "drop"]) {
    document.addEventListener(kind, (event) => {
      event.preventDefault();  // a file dropped beside the zone must not replace the page
      const zone = event.target.closest && event.target.closest(".drop");
      document.querySelectorAll(".drop").forEach((z) => z.classList.toggle("over", kind === "dragover" && z === zone));
      if (kind === "drop" && zone && event.dataTransfer.files.length) send(event.dataTransfer.files[0], zone);
    });
  }

  // Tiers -------------------------------------------------------------------------------------------------------
  let drag = null;
  const tierAt = (event) => {
    const under = document.elementFromPoint(event.clientX, event.clientY);
    return under && under.closest(".tier");
  };
  const move = (chip, tier) => tier && tell("tier-move", { name: chip.dataset.name, tier: Number(tier.dataset.tier) });
  document.addEventListener("pointerdown", (event) => {
    const chip = event.target.closest(".chip");
    if (!chip || event.button !== 0) return;
    event.preventDefault();
    drag = { chip, x: event.clientX, y: event.clientY, ghost: null };
  });
  document.addEventListener("pointermove", (event) => {
    if (!drag) return;
    if (!drag.ghost) {
      if (Math.hypot(event.clientX - drag.x, event.clientY - drag.y) < 5) return;
      drag.ghost = drag.chip.cloneNode(true);
      drag.ghost.removeAttribute("id");
      drag.ghost.classList.add("ghost");
      document.body.appendChild(drag.ghost);
    }
    drag.ghost.style.left = `${event.clientX + 6}px`;
    drag.ghost.style.top = `${event.clientY + 6}px`;
    const tier = tierAt(event);
    document.querySelectorAll(".tier").forEach((t) => t.classList.toggle("over", t === tier));
  });
  const drop = (event) => {
    if (!drag) return;
    const { chip, ghost } = drag;
    drag = null;
    document.querySelectorAll(".tier").forEach((t) => t.classList.remove("over"));
    if (ghost) ghost.remove();
    // A click moves the variable one tier on, a drag to where it was dropped.
    const next = chip.closest(".tier") && (chip.closest(".tier").nextElementSibling || document.querySelector(".tier"));
    if (event.type === "pointerup") move(chip, ghost ? tierAt(event) : next);
  };
  document.addEventListener("pointerup", drop);
  document.addEventListener("pointercancel", drop);
  document.addEventListener("keydown", (event) => {
    const chip = event.target.closest && event.target.closest(".chip");
    if (!chip) return;
    const here = chip.closest(".tier");
    const to = { ArrowRight: here.nextElementSibling, ArrowLeft: here.previousElementSibling, Enter: here.nextElementSibling };
    if (!(event.key in to)) return;
    event.preventDefault();
    const name = chip.dataset.name;
    move(chip, to[event.key]);
    // The columns are drawn again; the keyboard stays on the same variable.
    setTimeout(() => [...document.querySelectorAll(".chip")].filter((c) => c.dataset.name === name).forEach((c) => c.focus()), 600);
  });
})();
