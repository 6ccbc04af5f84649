// Logs in with a passkey, registers one or removes one. Each request carries the token of its page, so it works from
// no other page.
"use strict";

(() => {
  const place = document.getElementById("passkey");
  const buttons = document.querySelectorAll("[data-passkey]");
  if (!place || !window.PublicKeyCredential || !navigator.credentials) return;

  const bytes = (text) => {
    const plain = atob(text.replace(/-/g, "+").replace(/_/g, "/"));
    return Uint8Array.from(plain, (letter) => letter.charCodeAt(0));
  };
  const text = (buffer) =>
    btoa(String.fromCharCode(...new Uint8Array(buffer)))
      .replace(/\+/g, "-")
      .replace(/\//g, "_")
      .replace(/=+$/, "");

  const post = async (path, more) => {
    const answer = await fetch(path, {
      method: "POST",
      headers: { "content-type": "application/json" },
      credentials: "same-origin",
      body: JSON.stringify({ token: place.dataset.token, next: place.dataset.next, ...more }),
    });
    const body = await answer.json();
    if (!answer.ok) throw new Error(body.error);
    return body;
  };

  const named = (list) => list.map((key) => ({ ...key, id: bytes(key.id) }));
  const written = (key, response) => ({ id: key.id, rawId: text(key.rawId), type: key.type, response });

  const actions = {
    async login() {
      const options = await post("/oauth/passkey/login/options", {});
      const key = await navigator.credentials.get({
        publicKey: {
          ...options,
          challenge: bytes(options.challenge),
          allowCredentials: named(options.allowCredentials),
        },
      });
      const { clientDataJSON, authenticatorData, signature, userHandle } = key.response;
      const answer = written(key, {
        clientDataJSON: text(clientDataJSON),
        authenticatorData: text(authenticatorData),
        signature: text(signature),
        userHandle: userHandle ? text(userHandle) : null,
      });
      const { next } = await post("/oauth/passkey/login", { answer });
      location.assign(next);
    },
    async register() {
      const options = await post("/oauth/passkey/register/options", {});
      const key = await navigator.credentials.create({
        publicKey: {
          ...options,
          challenge: bytes(options.challenge),
          user: { ...options.user, id: bytes(options.user.id) },
          excludeCredentials: named(options.excludeCredentials),
        },
      });
      const answer = written(key, {
        clientDataJSON: text(key.response.clientDataJSON),
        attestationObject: text(key.response.attestationObject),
      });
      await post("/oauth/passkey/register", { answer, name: document.getElementById("passkey-name").value });
      location.reload();
    },
    async remove(button) {
      await post("/oauth/passkey/remove", { id: button.dataset.id });
      location.reload();
    },
  };

  for (const button of buttons) {
    button.hidden = false;
    button.addEventListener("click", async () => {
      place.hidden = true;
      try {
        await actions[button.dataset.passkey](button);
      } catch (error) {
        place.textContent = `${place.dataset.failed} ${error.message}`;
        place.hidden = false;
      }
    });
  }
})();
