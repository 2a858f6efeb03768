//! Calls at the instances of their owners.

use callward_core::{Delivery, ErrorKind, Instances, Owner, ToolCall, ToolError, ToolOutput};

use super::{Link, Upstream};
use crate::client::answer::RequestError;
use crate::client::handshake;
use crate::client::instances::Pool;
use crate::wire::Era;

impl Upstream {
    /// Runs a call at the instance of its owner.
    pub(super) async fn run_at_owner(&self, call: &ToolCall) -> Result<ToolOutput, ToolError> {
        let Some(pool) = &self.0.pool else {
            return self.run(call).await;
        };
        let Some(owner) = self.owner(pool, call).await? else {
            pool.open_lead(true).await?;
            if self.0.shared.is_reopening() {
                self.first_attempt().await;
            }
            return self.run(call).await;
        };
        if call.tool().definition.method.is_list() && !pool.has(owner, call) {
            // many clients list all there is and use nothing of it: no process starts for that
            let _open = pool.open_lead(false).await?;
            self.first_attempt().await;
            // it may run at another owner's instance
            let mut call = call.clone();
            call.context_mut().client = None;
            return self.run(&call).await;
        }
        let lease = pool.lease(owner, call).await?;
        let instance = lease.handle.upstream.as_ref().unwrap_or(self);
        instance.0.shared.note_owner(call);
        instance.first_attempt().await;
        let mut result = instance.run(call).await;
        if lease.handle.upstream.as_ref().is_some()
            && is_refused_session(&result)
            && self.opens_no_more_sessions(pool).await
        {
            result = self.run(call).await;
        }
        if let Ok(output) = &result {
            lease.answered(call, output).await;
        }
        result
    }

    /// Returns `true` if an HTTP server opens sessions, as far as is known. A session that was lost
    /// since shows no less.
    pub(super) fn opens_sessions(&self) -> bool {
        self.server_info().is_some_and(|info| info.opens_sessions)
    }

    /// Returns the owner whose instance runs a call; `None` if the lead runs it for all.
    ///
    /// A lead that speaks 2026-07-28 over HTTP serves all requests that have no session. Others
    /// have an instance if the server opens sessions; if not, it keeps nothing that could be kept
    /// apart.
    async fn owner<'a>(
        &self,
        pool: &Pool,
        call: &'a ToolCall,
    ) -> Result<Option<Owner<'a>>, ToolError> {
        let (Some(owner), Link::Http(link)) = (call.owner(), &self.0.link) else {
            return Ok(call.owner());
        };
        let info = link.info().await.map_err(RequestError::into_tool_error)?;
        if info.era == Era::Legacy {
            return Ok(Some(owner));
        }
        pool.open_lead(true).await?;
        let wants_session =
            owner.session.is_some() || call.tool().instances == Instances::Principal;
        Ok((info.opens_sessions && wants_session).then_some(owner))
    }

    /// Greets a server again that refused a session for good. Returns `true` if it opens none any
    /// more. A lead that serves an owner is not asked: its session would be lost.
    async fn opens_no_more_sessions(&self, pool: &Pool) -> bool {
        match &self.0.link {
            Link::Http(link) if !pool.lead_is_owned() => {
                link.greet_again().await.is_ok() && !self.opens_sessions()
            }
            _ => false,
        }
    }

    /// Waits until the first attempt to connect has an outcome, no longer than one may take.
    async fn first_attempt(&self) {
        let shared = &self.0.shared;
        // where it is not over, the call says what is known of the connection
        let _ = tokio::time::timeout(shared.options.connect_timeout, shared.tried()).await;
    }
}

/// Returns `true` if a call was not sent as the server does not know `initialize`.
fn is_refused_session(result: &Result<ToolOutput, ToolError>) -> bool {
    result.as_ref().is_err_and(|error| {
        error.kind == ErrorKind::ConnectFailed
            && error.delivery == Delivery::NotSent
            && error.code.is_some_and(handshake::refuses_initialize)
    })
}
