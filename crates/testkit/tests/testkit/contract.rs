//! Every check of the contract catches a layer that is deliberately wrong.

#![expect(clippy::unwrap_used, reason = "a failing helper fails the test")]

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use callward_core::{ToolCall, ToolError, ToolOutput};
use callward_testkit::{MockService, contract};
use tokio::sync::Semaphore;
use tower_service::Service;

/// What a deliberately wrong layer does wrong.
#[derive(Clone, Copy)]
enum Fault {
    None,
    CallsAnUnreadiedClone,
    ChangesTheAnswer,
    DetachesTheCall,
    KeepsPlaces,
    LosesReadiness,
}

#[derive(Clone)]
struct Faulty {
    inner: MockService,
    fault: Fault,
    places: Arc<Semaphore>,
}

impl Service<ToolCall> for Faulty {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = Pin<Box<dyn Future<Output = Result<ToolOutput, ToolError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        match (self.fault, self.inner.poll_ready(cx)) {
            (Fault::LosesReadiness, _) => Poll::Ready(Ok(())),
            (_, readiness) => readiness,
        }
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        match self.fault {
            Fault::None | Fault::LosesReadiness => Box::pin(self.inner.call(call)),
            Fault::KeepsPlaces => {
                let (places, answer) = (self.places.clone(), self.inner.call(call));
                Box::pin(async move {
                    // given back at the end only, and not by a drop
                    places.acquire().await.unwrap().forget();
                    let answer = answer.await;
                    places.add_permits(1);
                    answer
                })
            }
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
    contract::check(|inner| Faulty {
        inner,
        fault,
        places: Arc::new(Semaphore::new(64)),
    })
    .await;
}

#[tokio::test(start_paused = true)]
async fn a_layer_that_adds_nothing_keeps_the_contract() {
    check(Fault::None).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "polled ready")]
async fn calling_an_unreadied_clone_is_caught() {
    check(Fault::CallsAnUnreadiedClone).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "byte for byte")]
async fn changing_the_answer_is_caught() {
    check(Fault::ChangesTheAnswer).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "must")]
async fn detaching_the_call_is_caught() {
    check(Fault::DetachesTheCall).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "must not hold up others")]
async fn keeping_the_place_of_a_dropped_call_is_caught() {
    check(Fault::KeepsPlaces).await;
}

#[tokio::test(start_paused = true)]
#[should_panic(expected = "polled ready")]
async fn calling_before_it_is_ready_is_caught() {
    check(Fault::LosesReadiness).await;
}
