//! The steps of a sequence: each does one thing over HTTP, as an owner or a user would, and changes the model
//! accordingly. If a step is not possible now, another one is chosen.

use serde_json::{Value, json};

use super::LifecycleWorld;
use super::model::{ModelAccount, ModelBearer, ModelUser};
use crate::identity::as_bearer;
use crate::oauth::{granted, logged_in};

const NAMES: [&str; 4] = ["aki", "ben", "chie", "dan"];
/// Enough bearers to exercise every rule.
const BEARERS: usize = 12;
const ACCOUNTS: usize = 5;

impl LifecycleWorld {
    /// Takes a step and returns its description.
    pub(super) async fn act(&mut self) -> String {
        loop {
            let done = match self.random.below(16) {
                0 | 1 => self.create().await,
                2 => self.switch(true).await,
                3 => self.switch(false).await,
                4 => self.delete().await,
                5 => self.rename().await,
                6 | 7 => self.make_token().await,
                8 => self.revoke().await,
                9 => self.connect().await,
                10 => self.mask_account().await,
                11 => self.mask_person().await,
                12 => self.join(true).await,
                13 => self.join(false).await,
                14 => self.log_in().await,
                _ => self.reset().await,
            };
            if let Some(told) = done {
                return told;
            }
        }
    }

    /// Sends a request as the owner.
    async fn ask(&self, method: &str, path: &str, body: &Value) -> Value {
        let mut request = self.gateway.request(method, path);
        if !body.is_null() {
            request = request.json(body.to_string());
        }
        let reply = self.gateway.send(request).await;
        let said = reply.text();
        assert!(reply.status < 300, "{method} {path} {body}: {} {said}\n{}", reply.status, self.story);
        if said.is_empty() { Value::Null } else { reply.value() }
    }

    fn someone(&mut self) -> Option<usize> {
        let present = self.model.present();
        self.random.pick(&present).copied()
    }

    fn free_name(&mut self) -> Option<String> {
        let taken: Vec<&str> = self.model.present().into_iter().map(|at| &*self.model.people[at].name).collect();
        let free: Vec<&str> = NAMES.into_iter().filter(|name| !taken.contains(name)).collect();
        self.random.pick(&free).map(|name| (*name).to_owned())
    }

    fn path_of(&self, person: usize) -> String {
        format!("/v1/users/{}", self.model.people[person].name)
    }

    async fn create(&mut self) -> Option<String> {
        let name = self.free_name()?;
        let password = format!("the password of {name} {}", self.model.people.len());
        self.ask("POST", "/v1/users", &json!({ "name": name, "password": password })).await;
        let told = format!("create {name}");
        self.model.people.push(ModelUser {
            name,
            password,
            gone: false,
            disabled: false,
            masked: false,
            joined: false,
        });
        Some(told)
    }

    async fn switch(&mut self, disabled: bool) -> Option<String> {
        let at = self.someone()?;
        self.ask("PATCH", &self.path_of(at), &json!({ "disabled": disabled })).await;
        self.model.people[at].disabled = disabled;
        Some(format!("{} {}", if disabled { "disable" } else { "enable" }, self.model.people[at].name))
    }

    /// Deletes a user, with or without a successor.
    async fn delete(&mut self) -> Option<String> {
        let at = self.someone()?;
        let others: Vec<usize> = self.model.enabled().into_iter().filter(|other| *other != at).collect();
        let successor = if self.random.below(2) == 0 { None } else { self.random.pick(&others).copied() };
        let mut path = self.path_of(at);
        if let Some(successor) = successor {
            path = format!("{path}?successor={}", self.model.people[successor].name);
        }
        self.ask("DELETE", &path, &Value::Null).await;
        self.model.people[at].gone = true;
        match successor {
            None => self.model.accounts.retain(|account| account.person != at),
            Some(successor) => {
                let joined = self.model.people[at].joined;
                self.model.people[successor].joined |= joined;
                let theirs = self.model.accounts.iter_mut().filter(|account| account.person == at);
                theirs.for_each(|account| account.person = successor);
            }
        }
        Some(format!("DELETE {path}"))
    }

    async fn rename(&mut self) -> Option<String> {
        let (at, name) = (self.someone()?, self.free_name()?);
        let path = self.path_of(at);
        self.ask("PATCH", &path, &json!({ "name": name })).await;
        let told = format!("rename {} to {name}", self.model.people[at].name);
        self.model.people[at].name = name;
        Some(told)
    }

    async fn make_token(&mut self) -> Option<String> {
        let at = self.someone().filter(|_| self.model.bearers.len() < BEARERS)?;
        let person = &self.model.people[at];
        let in_work = person.joined && self.random.below(2) == 0;
        let mut form = json!({ "name": "a key", "user": person.name });
        if in_work {
            form["project"] = "work".into();
        }
        let told = format!("make a token for {}{}", person.name, if in_work { " in work" } else { "" });
        // A token for a disabled user is rejected, or works only once the user is enabled.
        if person.disabled {
            return None;
        }
        let made = self.ask("POST", "/v1/tokens", &form).await;
        let text = |name: &str| made[name].as_str().expect("text").to_owned();
        let (secret, id) = (text("secret"), text("id"));
        let bearer = ModelBearer { secret, token: Some(id), person: at, in_work, ended: false };
        self.model.bearers.push(bearer);
        Some(told)
    }

    async fn revoke(&mut self) -> Option<String> {
        let tokens: Vec<(usize, String)> = self
            .model
            .bearers
            .iter()
            .enumerate()
            .filter(|(_, bearer)| !bearer.ended && !self.model.people[bearer.person].gone)
            .filter_map(|(at, bearer)| Some((at, bearer.token.clone()?)))
            .collect();
        let (at, id) = self.random.pick(&tokens)?.clone();
        self.ask("DELETE", &format!("/v1/tokens/{id}"), &Value::Null).await;
        self.model.bearers[at].ended = true;
        Some(format!("revoke a token of {}", self.model.people[self.model.bearers[at].person].name))
    }

    /// Connects an account with a user's token.
    async fn connect(&mut self) -> Option<String> {
        let able = self.model.enabled();
        let at = *self.random.pick(&able)?;
        let secret = self.model.key_of(at).filter(|_| self.model.accounts.len() < ACCOUNTS)?.secret.clone();
        let name = format!("account-{}", self.story.lines().count());
        let form = json!({ "provider": "notion", "name": name, "token": format!("ntn_{name}") });
        let request = as_bearer(&secret, "POST", "/v1/accounts").json(form.to_string());
        let reply = self.gateway.send(request).await;
        assert_eq!(reply.status, 201, "{}\n{}", reply.text(), self.story);
        let id = reply.value()["id"].as_str().expect("an id").to_owned();
        let told = format!("{} connects {name}", self.model.people[at].name);
        self.model.accounts.push(ModelAccount { id, name, person: at, masked: false });
        Some(told)
    }

    async fn mask_account(&mut self) -> Option<String> {
        let at = self.random.below(self.model.accounts.len().max(1));
        let account = self.model.accounts.get(at)?;
        let (masked, path) = (!account.masked, format!("/v1/accounts/{}", account.id));
        let deny = if masked { json!(["notion:search"]) } else { json!([]) };
        self.ask("PATCH", &path, &json!({ "permissions": { "deny": deny } })).await;
        self.model.accounts[at].masked = masked;
        Some(format!("{} {}", if masked { "mask" } else { "unmask" }, self.model.accounts[at].name))
    }

    async fn mask_person(&mut self) -> Option<String> {
        let at = self.someone()?;
        let masked = !self.model.people[at].masked;
        let mask = if masked { json!({ "deny": ["web:mirror"] }) } else { Value::Null };
        self.ask("PATCH", &self.path_of(at), &json!({ "permissions": mask })).await;
        self.model.people[at].masked = masked;
        Some(format!("{} {}", if masked { "mask" } else { "unmask" }, self.model.people[at].name))
    }

    async fn join(&mut self, joined: bool) -> Option<String> {
        let at = self.someone()?;
        self.model.people[at].joined = joined;
        let members = self.model.members();
        self.ask("PATCH", "/v1/projects/work", &json!({ "members": members })).await;
        Some(format!("{} {} work", self.model.people[at].name, if joined { "joins" } else { "leaves" }))
    }

    /// Logs in at a browser and authorizes a client.
    async fn log_in(&mut self) -> Option<String> {
        let able = self.model.enabled();
        let at = *self.random.pick(&able).filter(|_| self.model.bearers.len() < BEARERS)?;
        let person = &self.model.people[at];
        let mut browser = logged_in(&self.gateway, &person.name, &person.password).await;
        let secret = granted(&self.gateway, &mut browser).await;
        let told = format!("{} logs in and consents", person.name);
        self.model.bearers.push(ModelBearer { secret, token: None, person: at, in_work: false, ended: false });
        Some(told)
    }

    /// Resets a password, which ends grants and logins; personal tokens stay valid.
    async fn reset(&mut self) -> Option<String> {
        let at = self.someone()?;
        let password = format!("another password {}", self.story.lines().count());
        self.ask("PATCH", &self.path_of(at), &json!({ "password": password })).await;
        self.model.people[at].password = password;
        for bearer in &mut self.model.bearers {
            bearer.ended |= bearer.person == at && bearer.token.is_none();
        }
        Some(format!("reset the password of {}", self.model.people[at].name))
    }
}
