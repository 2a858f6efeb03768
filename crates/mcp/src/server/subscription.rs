//! Notifications of changed tools: plain for legacy clients, with the id of the subscription for
//! modern ones.

use crate::wire::{RequestId, meta, object, write};

use super::answer::Answer;
use super::error::Fault;
use super::request::Request;

const LIST_CHANGED: &str = "notifications/tools/list_changed";

/// Notifies a legacy client that the tools changed.
pub(super) fn list_changed() -> Answer {
    Answer::notification(LIST_CHANGED, None)
}

/// One `subscriptions/listen` of a modern client.
#[derive(Debug)]
pub(super) struct Subscription {
    id: RequestId,
    wants_tools: bool,
}

impl Subscription {
    /// Reads what the client subscribes to. Only notifications of changed tools are offered.
    pub(super) fn of(request: &Request) -> Result<Self, Fault> {
        let wants = request.params.get("notifications");
        let wants = wants.map(|raw| object::get_member(raw, "toolsListChanged"));
        match wants {
            Some(Ok(wants)) => Ok(Self {
                id: request.id.clone(),
                wants_tools: wants == Some(b"true"),
            }),
            _ => Err(Fault::invalid_params("`notifications` must be an object")),
        }
    }

    pub(super) fn id(&self) -> &RequestId {
        &self.id
    }

    pub(super) fn wants_tools(&self) -> bool {
        self.wants_tools
    }

    /// Confirms what will be reported. Always the first message of a subscription.
    pub(super) fn acknowledged(&self) -> Answer {
        let accepted: &[u8] = if self.wants_tools {
            b"{\"toolsListChanged\":true}"
        } else {
            b"{}"
        };
        let mut params = vec![b'{'];
        write::member(&mut params, "_meta", &self.tag());
        write::member(&mut params, "notifications", accepted);
        params.push(b'}');
        Answer::notification("notifications/subscriptions/acknowledged", Some(&params))
    }

    /// Notifies that the tools changed.
    pub(super) fn list_changed(&self) -> Answer {
        let mut params = vec![b'{'];
        write::member(&mut params, "_meta", &self.tag());
        params.push(b'}');
        Answer::notification(LIST_CHANGED, Some(&params))
    }

    /// Answers the request: nothing more will be reported.
    pub(super) fn ended(&self) -> Answer {
        let mut result = b"{\"resultType\":\"complete\"".to_vec();
        write::member(&mut result, "_meta", &self.tag());
        result.push(b'}');
        Answer::result(&self.id, &result.into())
    }

    fn tag(&self) -> Vec<u8> {
        let mut tag = vec![b'{'];
        write::member(&mut tag, meta::SUBSCRIPTION_ID, self.id.to_raw().as_bytes());
        tag.push(b'}');
        tag
    }
}
