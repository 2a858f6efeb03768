//! Notifications of changed lists: plain for legacy clients, with the id of the subscription for
//! modern ones.

use callward_core::List;
use serde_json::{Map, Value};

use crate::wire::object::Known;
use crate::wire::{RequestId, meta};

use super::answer::Answer;
use super::error::Fault;
use super::request::Request;

/// The members that ask for notifications of each list.
const CHANGED: [&str; List::ALL.len()] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
];

/// A client that is notified of changes.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The `subscriptions/listen` of a modern client.
    id: Option<RequestId>,
    /// By list.
    wants: [bool; List::ALL.len()],
}

impl Subscription {
    /// The subscription that each legacy client has.
    pub(super) const LEGACY: Self = Self {
        id: None,
        wants: [true; List::ALL.len()],
    };

    /// Reads what a modern client subscribes to. Only notifications of changed lists are offered,
    /// also of lists that are empty now.
    pub(super) fn of(request: &Request) -> Result<Self, Fault> {
        let asked = request
            .params
            .get("notifications")
            .map(|raw| Known::parse(raw, &CHANGED));
        let Some(Ok(asked)) = asked else {
            return Err(Fault::invalid_params("`notifications` must be an object"));
        };
        Ok(Self {
            id: Some(request.id.clone()),
            wants: CHANGED.map(|name| asked.get(name).is_some_and(|raw| &raw[..] == b"true")),
        })
    }

    pub(super) fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Confirms what will be reported. Always the first message of a modern subscription.
    pub(super) fn acknowledged(&self) -> Option<Answer> {
        let accepted = CHANGED.iter().zip(self.wants).filter(|(_, wants)| *wants);
        let accepted: Map<_, _> = accepted
            .map(|(name, _)| ((*name).to_owned(), true.into()))
            .collect();
        let (tag, accepted) = (tag(self.id()?), Value::from(accepted));
        let params = format!(r#"{{{tag},"notifications":{accepted}}}"#);
        Some(Answer::notification(
            "notifications/subscriptions/acknowledged",
            Some(params.as_bytes()),
        ))
    }

    /// Notifies that a list changed, if the client wants that.
    pub(super) fn list_changed(&self, list: List) -> Option<Answer> {
        let params = self.id().map(|id| format!("{{{}}}", tag(id)));
        let params = params.as_deref().map(str::as_bytes);
        let method = format!("notifications/{list}/list_changed");
        self.wants[list as usize].then(|| Answer::notification(&method, params))
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
