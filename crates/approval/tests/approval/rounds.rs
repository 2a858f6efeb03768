//! Calls that go on in further rounds.

use std::sync::Arc;

use callward_approval::{LocalStore, State};
use callward_core::{Delivery, ErrorKind, ToolCall, ToolError, ToolOutput};
use callward_testkit::MockService;

use crate::bed::{Bed, approval, call, settle};

fn round() -> ToolCall {
    let mut call = call("{}");
    call.context_mut().round = Some(Arc::default());
    call
}

fn asks() -> Result<ToolOutput, ToolError> {
    Ok(ToolOutput::from_json(r#"{"resultType":"input_required"}"#).unwrap())
}

#[tokio::test(start_paused = true)]
async fn a_round_of_an_approved_call_goes_on_once_for_each_question() {
    let unsent = ToolError::new(ErrorKind::ConnectFailed, Delivery::NotSent, "x");
    let done = Ok(ToolOutput::text("done"));
    let server = MockService::sequence(vec![asks(), Err(unsent), asks(), done]);
    let bed = Bed::with(LocalStore::default(), server).await;
    let running = bed.start(call("{}")).await;
    bed.decide(true).await;
    running.await.unwrap().unwrap();
    assert_eq!(bed.states().await, [State::Consumed]);
    // one that is not sent may be sent again, and does not give the approval itself back
    bed.run(round()).await.unwrap_err();
    assert_eq!(
        (bed.states().await, bed.server.started()),
        (vec![State::Consumed], 2)
    );
    bed.run(round()).await.unwrap();
    bed.run(round()).await.unwrap();
    assert_eq!(
        (bed.states().await, bed.server.started()),
        (vec![State::Succeeded], 4)
    );
    assert!(bed.server.seen()[3].round.is_some());
    // no question is open any more
    assert_eq!(approval(&bed.run(round()).await)["state"], "waiting");
}

#[tokio::test(start_paused = true)]
async fn a_made_up_round_is_asked_about() {
    let bed = Bed::new().await;
    let running = bed.start(round()).await;
    assert_eq!(
        (bed.states().await, bed.server.started()),
        (vec![State::Pending], 0)
    );
    bed.decide(true).await;
    running.await.unwrap().unwrap();
    let other = bed.start(round()).await;
    settle().await;
    assert_eq!(bed.server.started(), 1);
    other.abort();
}
