//! MCP tasks: calls that continue after their response. A task lives in its server; the id given to the client
//! contains the tool and the server's own id, sealed for that caller. Nothing is stored here, no other caller can use
//! the id, and its caller cannot once the tool is hidden.

use hikite_core::caller::{Caller, TASKS};
use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::key::ToolKey;
use hikite_core::source::{CallContext, Invocation, SourceMethod};

use super::Executor;
use crate::audit::Audit;
use crate::execute::execute_unmetered;

/// Domain separator of the seal.
const PURPOSE: &[u8] = b"task";

/// Returns `true` if a call may be answered with a task: the client supports tasks or asks for one.
pub(super) fn accepts_task(params: &Object, context: &CallContext) -> bool {
    params.get("task").is_some() || context.session.client_capabilities.has_extension(TASKS)
}

impl Executor {
    /// Replaces the task id of a result with a sealed one; other results stay unchanged.
    pub(super) fn seal_task_id(&self, result: Raw, key: &ToolKey, caller: &Caller) -> Raw {
        let Some(mut body) = result.object() else { return result };
        match body.text("taskId") {
            Some(own) if body.text("resultType").as_deref() == Some("task") => {
                body.set("taskId", self.task_id(key, &own, caller).as_str());
                body.raw()
            }
            _ => result,
        }
    }

    /// Forwards a request about a task to its server.
    pub(crate) async fn task(
        &self,
        method: SourceMethod,
        mut params: Object,
        context: CallContext,
        audit: &mut Audit<'_>,
    ) -> Result<Raw, Error> {
        let ours = params.text("taskId").unwrap_or_default();
        let caller = &context.session.caller;
        let (key, own) = self.unseal_task_id(&ours, caller).ok_or_else(Error::unknown_task)?;
        let snapshot = self.catalogs.snapshot_for(&*context.session);
        let view = snapshot.view_of(caller);
        let module = view.module(&key.module).filter(|_| view.permits(&key)).ok_or_else(Error::unknown_task)?;
        params.set("taskId", own.as_str());
        let what = format!("{} {own}", method.name());
        let invocation = Invocation { method, params };
        let result = execute_unmetered(snapshot.gate(module), module, what, invocation, context, audit).await?;
        Ok(match result.object() {
            Some(body) if body.get("taskId").is_some() => body.with("taskId", ours.as_str()).raw(),
            _ => result,
        })
    }

    fn task_id(&self, key: &ToolKey, own: &str, caller: &Caller) -> String {
        let [subject, project] = caller.parts();
        self.seal.put(format!("{}\n{}\n{own}", key.module, key.tool).as_bytes(), &[PURPOSE, subject, project])
    }

    fn unseal_task_id(&self, id: &str, caller: &Caller) -> Option<(ToolKey, String)> {
        let [subject, project] = caller.parts();
        let text = String::from_utf8(self.seal.open(id, &[PURPOSE, subject, project])?).ok()?;
        let mut parts = text.splitn(3, '\n');
        let key = ToolKey::new(parts.next()?, parts.next()?);
        Some((key, parts.next()?.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::probe;

    #[tokio::test]
    async fn the_id_of_a_task_names_its_server_for_its_caller_alone() {
        let gateway = probe::gateway().await;
        let (owner, stranger) = (Caller::owner(), Caller::named("stranger"));
        let answer = |text: &str| Raw::parse(text.to_owned()).expect("valid");
        let created = answer(r#"{"resultType":"task","taskId":"t\n1","status":"working"}"#);
        let key = ToolKey::new("files", "zip");
        let shown = gateway.executor.seal_task_id(created, &key, &owner).object().expect("an object");
        let id = shown.text("taskId").expect("an id");
        assert_eq!(gateway.executor.unseal_task_id(&id, &owner), Some((key.clone(), "t\n1".into())));
        assert_eq!(gateway.executor.unseal_task_id(&id, &stranger), None);
        let elsewhere = Caller { project: Some("p".into()), ..Caller::owner() };
        assert_eq!(gateway.executor.unseal_task_id(&id, &elsewhere), None);
        assert_eq!(gateway.executor.unseal_task_id("t1", &owner), None);
        let plain = answer(r#"{"content":[],"taskId":"mine"}"#);
        assert_eq!(gateway.executor.seal_task_id(plain.clone(), &key, &owner), plain);
    }
}
