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
pub struct MockClient(Mutex<Vec<Bytes>>);

impl MockClient {
    /// Returns a client, and the call as it makes it: it may be asked for input in forms.
    pub fn make(call: ToolCall) -> (Arc<Self>, ToolCall) {
        Self::make_with(call, false)
    }

    /// The same; with `takes_rounds` it is asked by results.
    pub fn make_with(mut call: ToolCall, takes_rounds: bool) -> (Arc<Self>, ToolCall) {
        let client = Arc::new(Self::default());
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
        self.0.lock().clone()
    }
}

impl ClientPeer for MockClient {
    fn ask(
        &self,
        _: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        self.0.lock().push(params);
        Box::pin(ready(Ok(Bytes::from_static(b"{}"))))
    }

    fn notify(&self, _: &'static str, params: &[u8]) {
        self.0.lock().push(Bytes::copy_from_slice(params));
    }
}
