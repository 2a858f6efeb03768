//! The trace context of a request.

use std::borrow::Cow;

use callward_core::{Outbound, TraceContext};
use http::{HeaderMap, HeaderName, HeaderValue};

use super::ask::{Ask, text_member};
use crate::wire::{header, meta};

/// The trace context of a request: in `_meta`, and over HTTP in headers too, where proxies before a
/// server look for it ([W3C Trace Context](https://www.w3.org/TR/trace-context-2/)).
#[derive(Debug, Default)]
pub(super) struct Carried<'a> {
    parent: Option<String>,
    state: Option<Cow<'a, str>>,
    baggage: Option<&'a str>,
}

impl<'a> Carried<'a> {
    /// Notifies the watcher, if any, that the request is about to be sent, and takes the context
    /// that it returns; otherwise takes what the call came with.
    pub(super) fn new(ask: &Ask<'a>, request: &Outbound<'_>) -> Self {
        let (call, watch) = (ask.call, ask.watch.as_ref());
        let baggage = call
            .and_then(|call| call.baggage.as_ref())
            .map(|all| all.as_str());
        let (parent, state) = match watch.and_then(|watch| watch.sends(request)) {
            Some(own) => {
                let state = own.state().map(|state| Cow::Owned(state.to_owned()));
                (Some(own.to_string()), state)
            }
            None => {
                let trace = call.and_then(|call| call.trace.as_ref());
                let parent = match (trace, call.is_some_and(|call| call.is_left_out)) {
                    (Some(trace), true) => Some(trace.unsampled().to_string()),
                    (Some(trace), false) => Some(trace.to_string()),
                    // otherwise each further server would sample again, and record parts of an
                    // unsampled trace
                    (None, true) => {
                        let root = TraceContext::new(fastrand::u128(1..), fastrand::u64(1..), 0);
                        root.map(|root| root.to_string())
                    }
                    (None, false) => None,
                };
                let state = trace.and_then(|trace| trace.state());
                (parent, state.map(Cow::Borrowed))
            }
        };
        Self {
            parent,
            state,
            baggage,
        }
    }

    /// Appends members to a `_meta` that is being written.
    pub(super) fn write(&self, out: &mut Vec<u8>) {
        for (name, _, value) in self.members() {
            text_member(out, name, value);
        }
    }

    /// Adds the headers. All of them are ASCII, since they were checked when they came.
    pub(super) fn add_to(&self, headers: &mut HeaderMap) {
        for (_, name, value) in self.members() {
            if let Ok(value) = HeaderValue::from_str(value) {
                headers.insert(name, value);
            }
        }
    }

    fn members(&self) -> impl Iterator<Item = (&'static str, &'static HeaderName, &str)> {
        let parent = self.parent.as_deref();
        [
            (meta::TRACEPARENT, &header::TRACEPARENT, parent),
            (meta::TRACESTATE, &header::TRACESTATE, self.state.as_deref()),
            (meta::BAGGAGE, &header::BAGGAGE, self.baggage),
        ]
        .into_iter()
        .filter_map(|(name, header, value)| Some((name, header, value?)))
    }
}
