//! Notifications of changed tools: plain for legacy clients, with the id of the subscription for
//! modern ones.

use crate::wire::{RequestId, meta, object};

use super::answer::Answer;
use super::error::Fault;
use super::request::Request;

/// A client that is notified of changes.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The `subscriptions/listen` of a modern client.
    id: Option<RequestId>,
    wants_tools: bool,
}

impl Subscription {
    /// The subscription that each legacy client has.
    pub(super) const LEGACY: Self = Self {
        id: None,
        wants_tools: true,
    };

    /// Reads what a modern client subscribes to. Only notifications of changed tools are offered.
    pub(super) fn of(request: &Request) -> Result<Self, Fault> {
        let wants = request.params.get("notifications");
        let wants = wants.map(|raw| object::get_member(raw, "toolsListChanged"));
        match wants {
            Some(Ok(wants)) => Ok(Self {
                id: Some(request.id.clone()),
                wants_tools: wants == Some(b"true"),
            }),
            _ => Err(Fault::invalid_params("`notifications` must be an object")),
        }
    }

    pub(super) fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Confirms what will be reported. Always the first message of a modern subscription.
    pub(super) fn acknowledged(&self) -> Option<Answer> {
        let accepted = match self.wants_tools {
            true => r#"{"toolsListChanged":true}"#,
            false => "{}",
        };
        let tag = tag(self.id()?);
        let params = format!(r#"{{{tag},"notifications":{accepted}}}"#);
        Some(Answer::notification(
            "notifications/subscriptions/acknowledged",
            Some(params.as_bytes()),
        ))
    }

    /// Notifies that the tools changed, if the client wants that.
    pub(super) fn list_changed(&self) -> Option<Answer> {
        let params = self.id().map(|id| format!("{{{}}}", tag(id)));
        let params = params.as_deref().map(str::as_bytes);
        self.wants_tools
            .then(|| Answer::notification("notifications/tools/list_changed", params))
    }

    /// Answers the request of a modern client: nothing more will be reported.
    pub(super) fn ended(&self) -> Option<Answer> {
        let id = self.id()?;
        let result = format!(r#"{{"resultType":"complete",{}}}"#, tag(id));
        Some(Answer::result(id, &result.into()))
    }
}

fn tag(id: &RequestId) -> String {
    let (name, id) = (meta::SUBSCRIPTION_ID, id.to_raw());
    format!(r#""_meta":{{"{name}":{id}}}"#)
}
