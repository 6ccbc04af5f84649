// Live updates, copy buttons, confirmations and keyboard shortcuts. All pages also work without this script.
"use strict";

const root = document.documentElement;

// Refreshes the elements with `data-live` by fetching the page again.
function live() {
  const parts = [...document.querySelectorAll("[data-live]")];
  if (!parts.length) return;
  const seconds = Math.min(...parts.map((part) => Number(part.dataset.live) || 5));
  setTimeout(async () => {
    if (!document.hidden) {
      try {
        const answer = await fetch(location.href, { headers: { accept: "text/html" }, redirect: "error" });
        if (answer.ok) {
          const fresh = new DOMParser().parseFromString(await answer.text(), "text/html");
          for (const part of parts) {
            const next = fresh.getElementById(part.id);
            if (next && next.innerHTML !== part.innerHTML && !part.contains(document.activeElement)) {
              part.replaceChildren(...next.childNodes);
            }
          }
        }
      } catch {
        // The server restarts, or the login has ended. The next attempt decides.
      }
    }
    live();
  }, seconds * 1000);
}

// Copies the text beside a button.
document.addEventListener("click", async (event) => {
  const button = event.target.closest("button[data-copy]");
  if (!button) return;
  const text = button.parentElement.querySelector("code, pre").textContent;
  try {
    await navigator.clipboard.writeText(text);
    const label = button.textContent;
    button.textContent = button.dataset.copy;
    setTimeout(() => (button.textContent = label), 1500);
  } catch {
    getSelection().selectAllChildren(button.parentElement.querySelector("code, pre"));
  }
});

// Asks for confirmation before an action that cannot be undone.
document.addEventListener("submit", (event) => {
  const question = event.submitter?.dataset.ask ?? event.target.dataset.ask;
  if (question && !confirm(question)) event.preventDefault();
});

// Submits the form when the selection changes.
document.addEventListener("change", (event) => {
  if (event.target.matches("[data-go]")) event.target.form.requestSubmit();
});

// Keyboard shortcuts: `/` searches, `g` and a letter opens a page, `?` shows help.
let waiting = false;
document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  if (event.target.closest("input, textarea, select")) {
    if (event.key === "Escape") event.target.blur();
    return;
  }
  if (waiting) {
    waiting = false;
    const link = document.querySelector(`nav a[data-key="${CSS.escape(event.key)}"]`);
    if (link) {
      event.preventDefault();
      link.click();
    }
    return;
  }
  if (event.key === "g") {
    waiting = true;
    setTimeout(() => (waiting = false), 1200);
  } else if (event.key === "/") {
    const field = document.querySelector("main input[type=search]");
    if (field) {
      event.preventDefault();
      field.focus();
      field.select();
    } else {
      location.href = "/ui/playground";
    }
  } else if (event.key === "?") {
    const help = document.getElementById("keys");
    if (help?.showModal) help.showModal();
  }
});

// Runs a batch and shows the status of each task while the response streams in.
const batch = document.querySelector("form[data-batch]");
batch?.addEventListener("submit", async (event) => {
  if (event.submitter?.value !== "run" || !window.ReadableStream) return;
  event.preventDefault();
  const output = document.getElementById("batch-answer");
  const body = new URLSearchParams(new FormData(batch, event.submitter));
  event.submitter.disabled = true;
  try {
    const answer = await fetch("/ui/batch/run", { method: "POST", body });
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    let text = "";
    for (;;) {
      const { value, done } = await reader.read();
      if (done) break;
      text += value;
      const events = text.split("\n\n");
      text = events.pop();
      for (const event of events) showEvent(event, output);
    }
    if (text.trim()) output.textContent = text;
  } catch (error) {
    output.textContent = String(error);
  } finally {
    event.submitter.disabled = false;
  }
});

function showEvent(event, output) {
  const field = (name) => event.split("\n").filter((line) => line.startsWith(name + ": ")).map((line) => line.slice(name.length + 2)).join("\n");
  let data;
  try {
    data = JSON.parse(field("data"));
  } catch {
    return;
  }
  if (field("event") === "task") {
    const box = document.querySelector(`[data-task="${CSS.escape(data.id)}"]`);
    if (box) box.dataset.status = data.status;
    const row = document.querySelector(`[data-row="${CSS.escape(data.id)}"]`);
    const label = document.getElementById("task-status")?.dataset[data.status] ?? data.status;
    if (row) row.textContent = data.ms === undefined ? label : `${label} · ${Math.round(data.ms)} ms`;
  } else {
    output.textContent = JSON.stringify(data.result ?? data, null, 2);
  }
}

root.dataset.script = "on";
live();
