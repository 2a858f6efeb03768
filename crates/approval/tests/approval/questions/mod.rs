//! Questions to the person at a client: what is sent, what is accepted, and how each one ends.

mod clients;
mod kinds;
mod model;

use std::collections::VecDeque;
use std::future::pending;
use std::sync::Arc;

use bytes::Bytes;
use callward_approval::questions::{Answer, Question, QuestionError, Questions, Upload};
use callward_core::{
    BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, ToolCall,
};
use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::bed::call;

/// Gives these answers, one after another, and then none.
#[derive(Default)]
struct Says {
    answers: Mutex<VecDeque<Value>>,
    asked: Mutex<Vec<Value>>,
}

impl ClientPeer for Says {
    fn ask(
        &self,
        method: ClientMethod,
        params: Bytes,
    ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
        assert_eq!(method, ClientMethod::Elicit);
        let params = serde_json::from_slice(&params).unwrap();
        self.asked.lock().push(params);
        let answer = self.answers.lock().pop_front();
        Box::pin(async move {
            match answer {
                Some(answer) => Ok(answer.to_string().into()),
                None => pending().await,
            }
        })
    }
}

fn accept(content: &Value) -> Value {
    json!({"action": "accept", "content": content})
}

fn only(answer: &Value) -> Value {
    accept(&json!({ "answer": answer }))
}

/// A call of a client that gives these answers and can be asked in both modes.
fn asks(answers: impl IntoIterator<Item = Value>, takes_rounds: bool) -> (Arc<Says>, ToolCall) {
    let says = Arc::new(Says::default());
    says.answers.lock().extend(answers);
    let mut call = call("{}");
    let context = call.context_mut();
    let both = br#"{"elicitation": {"form": {}, "url": {}}}"#;
    context.capabilities = ClientCapabilities::parse(both);
    context.client = Some(CallClient::new(says.clone(), takes_rounds));
    (says, call)
}

fn begin(
    questions: &Questions,
    call: &ToolCall,
    question: Question,
) -> JoinHandle<Result<Answer, QuestionError>> {
    let (questions, call) = (questions.clone(), call.clone());
    tokio::spawn(async move { questions.to(&call).ask(question).await })
}

fn file(media_type: &str, bytes: usize) -> Answer {
    Answer::File(Upload {
        name: "../a".to_owned(),
        media_type: media_type.to_owned(),
        content: vec![0; bytes].into(),
    })
}
