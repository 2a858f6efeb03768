//! Random orders of what happens to questions, against a model.

use std::collections::HashSet;
use std::time::Duration;

use callward_approval::questions::Secret;
use proptest::prelude::*;

use crate::bed::settle;

use super::*;

/// Judges a value by a schema, as a validator of JSON Schema does: the rules once more.
fn satisfies(schema: &Value, value: &Value) -> bool {
    let at_least = |key: &str, n: f64| schema[key].as_f64().is_none_or(|bound| n >= bound);
    let at_most = |key: &str, n: f64| schema[key].as_f64().is_none_or(|bound| n <= bound);
    let options = |of: &Value, one: &Value| of.as_array().is_none_or(|all| all.contains(one));
    match schema["type"].as_str().unwrap() {
        "boolean" => value.is_boolean(),
        "string" => value.as_str().is_some_and(|text| {
            let chars = text.chars().count() as f64;
            at_least("minLength", chars)
                && at_most("maxLength", chars)
                && options(&schema["enum"], value)
        }),
        kind @ ("integer" | "number") => value.as_f64().is_some_and(|n| {
            (kind == "number" || n.fract() == 0.0)
                && at_least("minimum", n)
                && at_most("maximum", n)
        }),
        "array" => value.as_array().is_some_and(|all| {
            let n = all.len() as f64;
            at_least("minItems", n)
                && at_most("maxItems", n)
                && all.iter().all(|one| options(&schema["items"]["enum"], one))
        }),
        _ => value.as_object().is_some_and(|given| {
            let members = schema["properties"].as_object().unwrap();
            let required = schema["required"].as_array().unwrap();
            required
                .iter()
                .all(|name| given.contains_key(name.as_str().unwrap()))
                && given
                    .iter()
                    .all(|(name, it)| members.get(name).is_some_and(|m| satisfies(m, it)))
        }),
    }
}

fn member() -> impl Strategy<Value = Value> {
    let count = || 0..4_u64;
    prop_oneof![
        Just(json!({"type": "boolean"})),
        (count(), count())
            .prop_map(|(a, b)| json!({"type": "string", "minLength": a, "maxLength": b})),
        (count(), count())
            .prop_map(|(a, b)| json!({"type": "integer", "minimum": a, "maximum": b})),
        count().prop_map(|a| json!({"type": "number", "maximum": a})),
        Just(json!({"type": "string", "enum": ["a", "b"]})),
        count().prop_map(|a| json!({
            "type": "array", "items": {"type": "string", "enum": ["a", "b"]}, "minItems": a,
        })),
    ]
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        any::<bool>().prop_map(Value::from),
        (-1..5_i64).prop_map(Value::from),
        Just(json!(1.5)),
        "[ab]{0,4}".prop_map(Value::from),
        Just(Value::Null),
    ];
    prop_oneof![3 => leaf.clone(), 1 => prop::collection::vec(leaf, 0..4).prop_map(Value::from)]
}

#[derive(Debug, Clone, Copy)]
enum Op {
    /// A question, of a secret or of a text.
    Ask(bool),
    /// One of them is answered by its page.
    Submit(usize, bool),
    Cancel(usize),
    /// Its asker leaves.
    Leave(usize),
    Pass(u64),
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        4 => any::<bool>().prop_map(Op::Ask),
        3 => (0..8_usize, any::<bool>()).prop_map(|(which, fits)| Op::Submit(which, fits)),
        2 => (0..8_usize).prop_map(Op::Cancel),
        1 => (0..8_usize).prop_map(Op::Leave),
        2 => (1..40_u64).prop_map(Op::Pass),
    ]
}

async fn run(ops: Vec<Op>) -> Result<(), TestCaseError> {
    let questions = Questions::default().with_page("");
    let mut events = questions.events();
    let (mut waits, mut clients) = (Vec::new(), Vec::new());
    for op in ops {
        match op {
            Op::Ask(secret) => {
                let (says, call) = asks(
                    [json!({"action": "accept", "content": {"answer": 7}})],
                    true,
                );
                let question = match secret {
                    true => Question::secret("q").with("minLength", 2),
                    false => Question::text("q"),
                };
                waits.push(begin(&questions, &call, question));
                clients.push(says);
            }
            Op::Submit(which, fits) => {
                let says = clients
                    .get(which)
                    .and_then(|says| says.asked.lock().first().cloned());
                let url = says.and_then(|asked| asked["url"].as_str().map(str::to_owned));
                let text = if fits { "ab" } else { "a" };
                let _ =
                    questions.submit(&url.unwrap_or_default(), Answer::Secret(Secret::new(text)));
            }
            Op::Cancel(which) => {
                if let Some(open) = questions.pending().get(which) {
                    let _ = questions.cancel(&open.id);
                }
            }
            Op::Leave(which) => waits.get(which).into_iter().for_each(JoinHandle::abort),
            Op::Pass(seconds) => tokio::time::advance(Duration::from_secs(seconds)).await,
        }
        settle().await;
    }
    tokio::time::advance(Duration::from_secs(61)).await;
    settle().await;
    prop_assert!(waits.iter().all(JoinHandle::is_finished));
    prop_assert!(questions.pending().is_empty());
    let (mut asked, mut ended) = (HashSet::new(), HashSet::new());
    while let Ok(event) = events.try_recv() {
        let id = event.question.id.clone();
        match event.outcome {
            None => prop_assert!(asked.insert(id), "asked twice"),
            Some(_) => prop_assert!(asked.contains(&id) && ended.insert(id), "ended twice"),
        }
    }
    prop_assert_eq!(&asked, &ended);
    let counted = questions.counts().values().sum::<u64>();
    prop_assert_eq!(counted, asked.len() as u64);
    Ok(())
}

proptest! {
    #[test]
    fn an_accepted_answer_satisfies_the_schema_that_was_sent(
        members in prop::collection::btree_map("[abc]", member(), 1..4),
        answers in prop::collection::vec(prop::collection::btree_map("[abc]", value(), 0..4), 1..16),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
        let required: Vec<_> = members.keys().take(1).collect();
        let schema = json!({"type": "object", "properties": members, "required": required});
        for answer in answers {
            let (says, call) = asks([accept(&json!(answer))], true);
            let mut question = Question::form("q", schema.clone());
            question.timeout = Duration::from_millis(1);
            let questions = Questions::default().with_handler({
                let answer = answer.clone();
                move |_| std::future::ready(Ok(Answer::Value(json!(answer))))
            });
            let accepted = runtime.block_on(questions.to(&call).ask(question));
            prop_assert_eq!(accepted.is_ok(), satisfies(&schema, &json!(answer)), "{:?}", accepted);
            drop(says);
        }
    }

    #[test]
    fn every_question_ends_exactly_once(ops in prop::collection::vec(op(), 1..40)) {
        let mut runtime = tokio::runtime::Builder::new_current_thread();
        let runtime = runtime.enable_time().start_paused(true).build().unwrap();
        runtime.block_on(run(ops))?;
    }
}
