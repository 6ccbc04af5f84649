//! Dispatch of commands: every command is recorded and goes to the part that runs it.

mod fetch;
mod output;

use hikite_core::error::Error;
use hikite_core::json::{Object, Raw};
use hikite_core::source::{CallContext, SourceMethod};

use crate::audit::Audit;
use crate::call_result::CallResult;
use crate::command::Command;
use crate::gateway::Gateway;
use crate::handle::is_stored_result;
use crate::surface::{self, Surfaces};

impl Gateway {
    /// Handles `tools/call` on the given surfaces.
    pub async fn call_tool(
        &self,
        surfaces: Surfaces,
        params: Object,
        context: CallContext,
    ) -> Result<CallResult, Error> {
        let (outcome, failure) = match surface::translate(surfaces, params) {
            Ok((command, failure)) => (self.dispatch_on(failure.surface(), command, context).await, failure),
            Err(misread) => {
                self.auditor.record_misread(&misread, &context).await?;
                (Err(misread.error), misread.failure)
            }
        };
        outcome.map_or_else(|error| failure.render(error), |result| Ok(result.into()))
    }

    pub async fn dispatch(&self, command: Command, context: CallContext) -> Result<Raw, Error> {
        self.dispatch_on("", command, context).await
    }

    /// Runs a command and records it whatever its outcome. `surface` names the origin of the request.
    pub(crate) async fn dispatch_on(
        &self,
        surface: &'static str,
        command: Command,
        context: CallContext,
    ) -> Result<Raw, Error> {
        let scopes = context.session.caller.scopes;
        let mut audit = self.auditor.open(surface, &command, &context).await?;
        let outcome = match context.session.caller.require(command.scope()) {
            Ok(()) => self.perform(command, context, &mut audit).await,
            Err(error) => Err(error),
        };
        self.auditor.close(audit, outcome, scopes).await
    }

    async fn perform(&self, command: Command, context: CallContext, audit: &mut Audit<'_>) -> Result<Raw, Error> {
        // Everything but a call is boxed, so that the future of a call stays small.
        match command {
            Command::Call { target, params, options } => {
                self.executor.call(target, params, options, context, audit).await
            }
            Command::Describe { category, names } => {
                Box::pin(self.discovery.describe_category((&*context.session).into(), &category, names.as_deref()))
                    .await
            }
            Command::Search { requested, detail, params } => {
                Ok(Box::pin(self.discovery.search(&requested, detail, params, &context, audit)).await)
            }
            Command::Open(opening) => Box::pin(self.discovery.open(opening, context)).await,
            Command::Execute { target, params, options, wanted, dialect } => {
                let how = (options, wanted, dialect);
                Box::pin(self.execute_with_output(target, params, how, context, audit)).await
            }
            Command::Batch(batch) => Box::pin(self.batches.run_as_tool(batch, context, audit)).await,
            Command::Fetch { uri, part, params, dialect } => {
                Box::pin(self.fetch(uri, (part, dialect), params, context, audit)).await
            }
            Command::FetchPrompt { module, name, params } => {
                Box::pin(self.executor.fetch_prompt(module, name, params, context, audit)).await
            }
            Command::Read { params } if is_stored_result(&params) => {
                Box::pin(self.read_stored_result(params, context, audit)).await
            }
            Command::Read { params } => {
                Box::pin(self.executor.resource(SourceMethod::ReadResource, params, context, audit)).await
            }
            Command::Subscribe { params } => {
                Box::pin(self.executor.resource(SourceMethod::Subscribe, params, context, audit)).await
            }
            Command::Unsubscribe { params } => {
                Box::pin(self.executor.resource(SourceMethod::Unsubscribe, params, context, audit)).await
            }
            Command::Skill { params } => {
                Box::pin(self.executor.resource(SourceMethod::GetSkill, params, context, audit)).await
            }
            Command::Directory { params } => {
                Box::pin(self.executor.resource(SourceMethod::ReadDirectory, params, context, audit)).await
            }
            Command::Prompt { params } => Box::pin(self.executor.prompt(params, context, audit)).await,
            Command::Complete { params } => Box::pin(self.executor.complete(params, context, audit)).await,
            Command::Task { method, params } => Box::pin(self.executor.task(method, params, context, audit)).await,
        }
    }
}
