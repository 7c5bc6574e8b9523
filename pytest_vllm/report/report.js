"use strict";
(() => {
  const rows = [...document.querySelectorAll("details.check")];
  const buttons = [...document.querySelectorAll("button[data-verdict]")];
  const suite = document.getElementById("suite");
  const words = document.getElementById("words");
  const shown = document.getElementById("shown");

  const apply = () => {
    const verdicts = new Set(buttons.filter((b) => b.getAttribute("aria-pressed") === "true").map((b) => b.dataset.verdict));
    const text = words.value.trim().toLowerCase();
    let count = 0;
    for (const row of rows) {
      const fits = verdicts.has(row.dataset.verdict)
        && (suite.value === "" || row.dataset.suite === suite.value)
        && (text === "" || row.textContent.toLowerCase().includes(text));
      row.hidden = !fits;
      count += fits ? 1 : 0;
    }
    shown.textContent = `${count} of ${rows.length} checks shown`;
  };

  for (const button of buttons) {
    button.addEventListener("click", () => {
      button.setAttribute("aria-pressed", String(button.getAttribute("aria-pressed") !== "true"));
      apply();
    });
  }
  suite.addEventListener("change", apply);
  words.addEventListener("input", apply);
  const unfold = () => {
    const named = document.getElementById(decodeURIComponent(location.hash.slice(1)));
    if (named instanceof HTMLDetailsElement) {
      named.hidden = false;
      named.open = true;
      named.scrollIntoView();
    }
  };
  window.addEventListener("hashchange", unfold);

  // Paper cannot be clicked: what does not hold is printed with its evidence.
  let folded = [];
  window.addEventListener("beforeprint", () => {
    folded = [...document.querySelectorAll("details.check:not([open]), .causes details:not([open])")];
    for (const one of folded) one.open = true;
  });
  window.addEventListener("afterprint", () => {
    for (const one of folded) one.open = false;
  });

  document.getElementById("filters").hidden = false;
  apply();
  unfold();
})();
