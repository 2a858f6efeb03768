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

#[tokio::test(start_paused = true)]
async fn each_wrong_layer_is_caught_and_a_right_one_passes() {
    for (fault, rule) in [
        (Fault::None, None),
        (Fault::CallsAnUnreadiedClone, Some("polled ready")),
        (Fault::ChangesTheAnswer, Some("byte for byte")),
        (Fault::DetachesTheCall, Some("must")),
        (Fault::KeepsPlaces, Some("must not hold up others")),
        (Fault::LosesReadiness, Some("polled ready")),
    ] {
        let wrong = move |inner| Faulty {
            inner,
            fault,
            places: Arc::new(Semaphore::new(64)),
        };
        let checked = tokio::spawn(contract::check(wrong)).await;
        let said = checked.err().map(|failed| {
            let panic = failed.into_panic();
            let literal = panic.downcast_ref::<&str>().map(ToString::to_string);
            literal.unwrap_or_else(|| panic.downcast_ref::<String>().unwrap().clone())
        });
        let is_caught = said
            .as_ref()
            .zip(rule)
            .map(|(said, rule)| said.contains(rule));
        assert_eq!(is_caught, rule.map(|_| true), "{rule:?}: {said:?}");
        assert_eq!(said.is_some(), rule.is_some(), "{said:?}");
    }
}
