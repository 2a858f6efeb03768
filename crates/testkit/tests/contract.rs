//! Every check of the contract catches a layer that is deliberately wrong.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll};

use tollgate_core::{ToolCall, ToolError, ToolOutput};
use tollgate_testkit::{MockService, contract};
use tower_service::Service;

/// What a deliberately wrong layer does wrong.
#[derive(Clone, Copy)]
enum Fault {
    None,
    CallsAnUnreadiedClone,
    ChangesTheAnswer,
    DetachesTheCall,
}

#[derive(Clone)]
struct Faulty {
    inner: MockService,
    fault: Fault,
}

impl Service<ToolCall> for Faulty {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        match self.fault {
            Fault::None => Box::pin(self.inner.call(call)),
            Fault::CallsAnUnreadiedClone => Box::pin(self.inner.clone().call(call)),
            Fault::ChangesTheAnswer => {
                let answer = self.inner.call(call);
                Box::pin(async move { answer.await.map(|_| ToolOutput::text("other")) })
            }
            Fault::DetachesTheCall => {
                let answer = tokio::spawn(self.inner.call(call));
                Box::pin(async move {
                    answer
                        .await
                        .unwrap_or_else(|_| Ok(ToolOutput::text("panicked")))
                })
            }
        }
    }
}

async fn check(fault: Fault) {
    contract::check(|inner| Faulty { inner, fault }).await;
}

#[tokio::test]
async fn a_layer_that_adds_nothing_keeps_the_contract() {
    check(Fault::None).await;
}

#[tokio::test]
#[should_panic(expected = "polled ready")]
async fn calling_an_unreadied_clone_is_caught() {
    check(Fault::CallsAnUnreadiedClone).await;
}

#[tokio::test]
#[should_panic(expected = "byte for byte")]
async fn changing_the_answer_is_caught() {
    check(Fault::ChangesTheAnswer).await;
}

#[tokio::test]
#[should_panic(expected = "must")]
async fn detaching_the_call_is_caught() {
    check(Fault::DetachesTheCall).await;
}
