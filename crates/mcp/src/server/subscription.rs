//! Notifications of changed lists and of updated resources: plain for legacy clients, with the id
//! of the subscription for modern ones.

use std::future::ready;
use std::sync::Arc;

use callward_core::{BoxStream, Caller, Inbound, List};
use futures_util::future::OptionFuture;
use futures_util::{StreamExt, stream};
use serde_json::{Map, Value};
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::wire::object::Known;
use crate::wire::{Era, RequestId, meta};

use super::answer::Answer;
use super::error::Fault;
use super::request::Request;
use super::{Backend, CallRequest, Subscriber};

/// The members that ask for notifications of each list.
const CHANGED: [&str; List::ALL.len()] = [
    "toolsListChanged",
    "promptsListChanged",
    "resourcesListChanged",
];

/// The member that asks for notifications of updated resources.
const RESOURCES: &str = "resourceSubscriptions";

/// The most resources that one subscription may have. Further ones are not accepted.
const MAX_RESOURCES: usize = 256;

/// How many of them are subscribed to at the same time.
const AT_ONCE: usize = 8;

/// A client that is notified of changes.
#[derive(Debug)]
pub(super) struct Subscription {
    /// The `subscriptions/listen` of a modern client.
    id: Option<RequestId>,
    /// By list.
    wants: [bool; List::ALL.len()],
    /// The resources that a modern client asks for, and then those that are accepted.
    resources: Option<Vec<String>>,
    subscriber: Option<Arc<dyn Subscriber>>,
    ended: CancellationToken,
    _guard: DropGuard,
}

impl Subscription {
    fn new(id: Option<RequestId>, wants: [bool; List::ALL.len()]) -> Self {
        let ended = CancellationToken::new();
        Self {
            id,
            wants,
            resources: None,
            subscriber: None,
            _guard: ended.clone().drop_guard(),
            ended,
        }
    }

    /// Returns the subscription that each legacy client has.
    pub(super) fn legacy(subscriber: Option<Arc<dyn Subscriber>>) -> Self {
        Self {
            subscriber,
            ..Self::new(None, [true; List::ALL.len()])
        }
    }

    /// Reads what a modern client subscribes to. Notifications of changed lists are offered, also
    /// of lists that are empty now, and of the resources that are [opened](Self::open).
    pub(super) fn of(request: &Request) -> Result<Self, Fault> {
        let [tools, prompts, resources] = CHANGED;
        let asked = request
            .params
            .get("notifications")
            .map(|raw| Known::parse(raw, &[tools, prompts, resources, RESOURCES]));
        let Some(Ok(asked)) = asked else {
            return Err(Fault::invalid_params("`notifications` must be an object"));
        };
        let resources = asked.get(RESOURCES).map(|raw| serde_json::from_slice(raw));
        let resources: Option<Vec<String>> = resources.transpose().map_err(|_| {
            Fault::invalid_params("`resourceSubscriptions` must be an array of strings")
        })?;
        let wants = CHANGED.map(|name| asked.get(name).is_some_and(|raw| &raw[..] == b"true"));
        Ok(Self {
            resources,
            ..Self::new(Some(request.id.clone()), wants)
        })
    }

    /// Returns `true` if it names resources, and so has to be opened.
    pub(super) fn has_resources(&self) -> bool {
        self.resources.as_ref().is_some_and(|uris| !uris.is_empty())
    }

    /// Subscribes to the resources that a modern client names. Those that it may not subscribe to
    /// are left out.
    pub(super) async fn open(
        mut self,
        backend: &dyn Backend,
        caller: &Arc<Caller>,
        inbound: Inbound,
    ) -> Self {
        if !self.has_resources() {
            return self;
        }
        let asked = self.resources.take().unwrap_or_default();
        self.subscriber = backend.subscriber(caller);
        let (subscriber, inbound) = (self.subscriber.clone(), Arc::new(inbound));
        let subscribed = asked.into_iter().take(MAX_RESOURCES).map(|uri| {
            let read = CallRequest::read(&uri, Era::Modern, caller, &inbound);
            let subscribed = subscriber.clone().map(|known| known.subscribe(read));
            async move {
                let subscribed = OptionFuture::from(subscribed).await;
                subscribed.is_some_and(|done| done.is_ok()).then_some(uri)
            }
        });
        let accepted = stream::iter(subscribed).buffered(AT_ONCE);
        self.resources = Some(accepted.filter_map(ready).collect().await);
        self
    }

    pub(super) fn id(&self) -> Option<&RequestId> {
        self.id.as_ref()
    }

    /// Confirms what will be reported. Always the first message of a modern subscription.
    pub(super) fn acknowledged(&self) -> Option<Answer> {
        let accepted = CHANGED.iter().zip(self.wants).filter(|(_, wants)| *wants);
        let mut accepted: Map<_, _> = accepted
            .map(|(name, _)| ((*name).to_owned(), true.into()))
            .collect();
        if let Some(resources) = &self.resources {
            accepted.insert(RESOURCES.to_owned(), resources.clone().into());
        }
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

    /// Returns a stream of notifications of updated resources, until this is dropped. Without
    /// resources it never has one.
    pub(super) fn updates(&self) -> BoxStream<'static, Answer> {
        let Some(subscriber) = self.subscriber.clone() else {
            return Box::pin(stream::pending().take_until(self.ended.clone().cancelled_owned()));
        };
        let id = self.id.clone();
        let updates = subscriber.updates().map(move |uri| {
            let mut params = format!(r#"{{"uri":{}"#, Value::from(uri));
            if let Some(id) = &id {
                params = format!("{params},{}", tag(id));
            }
            params.push('}');
            Answer::notification("notifications/resources/updated", Some(params.as_bytes()))
        });
        Box::pin(updates.take_until(self.ended.clone().cancelled_owned()))
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
