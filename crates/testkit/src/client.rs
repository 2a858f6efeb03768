//! A client that servers may ask something.

use std::future::ready;
use std::sync::Arc;

use bytes::Bytes;
use callward_core::{
    BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, ToolCall,
};
use parking_lot::Mutex;

/// A client that answers each question at once, and notes it and each notification.
#[derive(Debug, Default)]
pub struct MockClient {
    seen: Mutex<Vec<Bytes>>,
    /// Its answer to each question; `None` for `{}`.
    answer: Option<&'static str>,
}

impl MockClient {
    /// Returns a client, and the call as it makes it: it may be asked for input in forms.
    pub fn make(call: ToolCall) -> (Arc<Self>, ToolCall) {
        Self::make_with(call, false)
    }

    /// The same; it answers each question so.
    pub fn answering(call: ToolCall, answer: &'static str) -> (Arc<Self>, ToolCall) {
        let client = Self {
            answer: Some(answer),
            ..Self::default()
        };
        Self::of(client, call, false)
    }

    /// The same; with `takes_rounds` it is asked by results.
    pub fn make_with(call: ToolCall, takes_rounds: bool) -> (Arc<Self>, ToolCall) {
        Self::of(Self::default(), call, takes_rounds)
    }

    fn of(client: Self, mut call: ToolCall, takes_rounds: bool) -> (Arc<Self>, ToolCall) {
        let client = Arc::new(client);
        let context = call.context_mut();
        context.capabilities = ClientCapabilities::parse(br#"{"elicitation":{}}"#);
        context.client = Some(CallClient::new(client.clone(), takes_rounds));
        (client, call)
    }

    /// Asks the client of a call for input, as the connection to a server does.
    pub async fn ask(call: &ToolCall, params: impl Into<Bytes>) {
        let wait = |waits| {
            if let Some(sink) = call.progress() {
                sink.waits_for_person(waits);
            }
        };
        wait(true);
        if let Some(client) = &call.client {
            let _answer = client.ask(ClientMethod::Elicit, params.into()).await;
        }
        wait(false);
    }

    /// Returns the parameters of the questions so far.
    pub fn questions(&self) -> Vec<Bytes> {
        self.seen.lock().clone()
    }
}

impl ClientPeer for MockClient {
    fn ask(
        &self,
        _: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        self.seen.lock().push(params);
        let answer = self.answer.unwrap_or("{}");
        Box::pin(ready(Ok(Bytes::from_static(answer.as_bytes()))))
    }

    fn notify(&self, _: &'static str, params: &[u8]) {
        self.seen.lock().push(Bytes::copy_from_slice(params));
    }
}
