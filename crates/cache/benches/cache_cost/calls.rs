//! The calls, and the service that answers them.

use std::future::{Future, Ready, ready};
use std::hash::Hasher;
use std::hint::black_box;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, Waker};
use std::thread;

use callward_core::{ToolCall, ToolError, ToolOutput};
use callward_testkit::tool;
use siphasher::sip128::{Hasher128, SipHasher13};
use tower::Service;

use crate::CALLS;

/// Returns how many distinct calls there are. What a hit costs depends on it: the memory that a few
/// calls take stays in the processor's nearest cache, that of many does not.
pub(crate) fn calls_asked() -> usize {
    static ASKED: OnceLock<usize> = OnceLock::new();
    *ASKED.get_or_init(|| {
        let mut arguments = std::env::args().skip_while(|argument| argument != "--calls");
        let asked = arguments.nth(1);
        asked.map_or(CALLS, |asked| {
            asked.parse().expect("--calls takes a number")
        })
    })
}

pub(crate) fn calls(name: &str) -> Vec<ToolCall> {
    let get = tool(name).read_only().build();
    let note = "n".repeat(140);
    (0..calls_asked())
        .map(|id| {
            let arguments =
                format!(r#"{{"id":{id:>6},"tenant":"acme","expand":["a","b"],"note":"{note}"}}"#);
            ToolCall::new(get.clone(), arguments)
        })
        .collect()
}

/// A service that answers at once with the same output, or as soon as its gate is open.
#[derive(Clone)]
pub(crate) struct Leaf {
    pub(crate) output: ToolOutput,
    pub(crate) gate: Option<Arc<AtomicBool>>,
}

/// The answer of a [`Leaf`] with a gate. Polled by hand, so nobody needs to be woken.
pub(crate) struct Gated(ToolOutput, Arc<AtomicBool>);

impl Future for Gated {
    type Output = Result<ToolOutput, ToolError>;

    fn poll(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Self::Output> {
        if self.1.load(Ordering::Relaxed) {
            Poll::Ready(Ok(self.0.clone()))
        } else {
            Poll::Pending
        }
    }
}

impl Service<ToolCall> for Leaf {
    type Response = ToolOutput;
    type Error = ToolError;
    type Future = futures_util::future::Either<Ready<Result<ToolOutput, ToolError>>, Gated>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), ToolError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, call: ToolCall) -> Self::Future {
        black_box(&call);
        let output = self.output.clone();
        match &self.gate {
            None => futures_util::future::Either::Left(ready(Ok(output))),
            Some(gate) => futures_util::future::Either::Right(Gated(output, gate.clone())),
        }
    }
}

pub(crate) fn sip(bytes: &[u8]) -> u128 {
    let mut hasher = SipHasher13::new_with_keys(1, 2);
    hasher.write(bytes);
    hasher.finish128().into()
}

/// Calls once. The answer is there at once, unless another thread runs the same call.
pub(crate) fn answer<S>(service: &mut S, call: ToolCall)
where
    S: Service<ToolCall, Response = ToolOutput>,
{
    let mut cx = Context::from_waker(Waker::noop());
    assert!(service.poll_ready(&mut cx).is_ready());
    let mut answer = pin!(service.call(call));
    loop {
        match answer.as_mut().poll(&mut cx) {
            Poll::Ready(Ok(output)) => return drop(black_box(output)),
            Poll::Ready(Err(_)) => panic!("the service never fails"),
            Poll::Pending => thread::yield_now(),
        }
    }
}
