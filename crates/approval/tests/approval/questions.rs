//! Questions to the person at a client: what is sent, what is accepted, and how each one ends.

use std::collections::{HashSet, VecDeque};
use std::future::pending;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use callward_approval::Bounds;
use callward_approval::questions::{
    Answer, Outcome, Question, QuestionError, QuestionKind, Questions, Secret, Upload,
};
use callward_core::{
    BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, Inbound,
    ToolCall, Transport,
};
use parking_lot::Mutex;
use proptest::prelude::*;
use serde_json::{Value, json};
use tokio::task::JoinHandle;

use crate::bed::{by, call, settle};

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

/// Each kind that a form asks for: the question, the schema of its answer as it is sent, what is
/// accepted, and what is not.
fn kinds() -> Vec<(Question, Value, Vec<Value>, Vec<Value>)> {
    let text = Question::text("q")
        .with("minLength", 2)
        .with("maxLength", 3);
    let form = json!({
        "type": "object",
        "properties": {
            "n": {"type": "integer", "minimum": 1, "maximum": 9},
            "x": {"type": "number", "title": "X"},
            "when": {"type": "string", "format": "date"},
        },
        "required": ["n"],
    });
    vec![
        (
            Question::confirmation("q").with("default", true),
            json!({"type": "boolean", "default": true}),
            vec![json!(true), json!(false)],
            vec![json!("true"), json!(1), json!(null), json!([true])],
        ),
        (
            text.with("pattern", "^a"),
            json!({"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^a"}),
            vec![json!("ab"), json!("aßc")],
            vec![json!("a"), json!("abcd"), json!("ba"), json!(7)],
        ),
        (
            Question::text("q"),
            json!({"type": "string"}),
            vec![json!(""), json!("a".repeat(4096))],
            vec![json!("a".repeat(4097)), json!({})],
        ),
        (
            Question::select("q", &["red", "blue"]),
            json!({"type": "string", "enum": ["red", "blue"]}),
            vec![json!("red")],
            vec![json!("Red"), json!(["red"]), json!(0)],
        ),
        (
            Question::multi_select("q", &["a", "b", "c"])
                .with("minItems", 1)
                .with("maxItems", 2),
            json!({
                "type": "array", "items": {"type": "string", "enum": ["a", "b", "c"]},
                "minItems": 1, "maxItems": 2,
            }),
            vec![json!(["c"]), json!(["b", "a"])],
            vec![
                json!([]),
                json!(["a", "b", "c"]),
                json!(["a", "a"]),
                json!(["d"]),
                json!("a"),
            ],
        ),
        (
            Question::form("q", form.clone()),
            form,
            vec![
                json!({"n": 1}),
                json!({"n": 9, "x": 0.5, "when": "2026-01-01"}),
            ],
            vec![
                json!({}),
                json!({"n": 0}),
                json!({"n": 1.5}),
                json!({"n": 1, "y": 1}),
                json!(1),
            ],
        ),
    ]
}

#[tokio::test(start_paused = true)]
async fn each_kind_sends_its_schema_and_checks_the_answer() {
    for (question, schema, good, bad) in kinds() {
        let is_form = question.kind() == QuestionKind::Form;
        let content = |answer: &Value| match is_form {
            true => accept(answer),
            false => only(answer),
        };
        for answer in &good {
            let (says, call) = asks([content(answer)], false);
            let questions = Questions::default();
            let answered = questions.to(&call).ask(question.clone()).await;
            assert_eq!(answered.unwrap(), Answer::Value(answer.clone()));
            assert!(call.has_asked(), "the result belongs to this call alone");
            let asked = says.asked.lock().remove(0);
            let sent = &asked["requestedSchema"];
            let sent = if is_form {
                sent
            } else {
                &sent["properties"]["answer"]
            };
            assert_eq!(*sent, schema);
            assert_eq!(asked["requestedSchema"]["type"], "object");
        }
        for answer in &bad {
            // asked again twice, with the reason
            let (says, call) = asks(vec![content(answer); 4], true);
            let questions = Questions::default();
            let refused = questions.to(&call).ask(question.clone()).await;
            assert!(
                matches!(refused, Err(QuestionError::Unfit(_))),
                "{answer} {refused:?}"
            );
            let asked = says.asked.lock().clone();
            assert_eq!(asked.len(), 3, "{answer}");
            assert_eq!(asked[0]["message"], "q");
            let again = asked[1]["message"].as_str().unwrap();
            assert!(again.starts_with("q\n\nPlease answer again."), "{again}");
            let (says, call) = asks([content(answer), content(&good[0])], true);
            assert!(questions.to(&call).ask(question.clone()).await.is_ok());
            assert_eq!(says.asked.lock().len(), 2);
        }
    }
}

#[tokio::test(start_paused = true)]
async fn questions_that_cannot_be_asked_are_refused() {
    let form = |schema: Value| Question::form("q", schema);
    let of = |member: Value| form(json!({"type": "object", "properties": {"a": member}}));
    let mut late = Question::confirmation("q");
    late.on_timeout = Some(json!("yes"));
    let mut never = Question::confirmation("q");
    never.timeout = Duration::ZERO;
    let mut secret = Question::secret("q");
    secret.on_timeout = Some(json!("x"));
    for question in [
        Question::text(""),
        Question::text("q").with("pattern", "("),
        Question::text("q").with("pattern", "(a{1000}){1000}"),
        Question::text("q").with("default", 7),
        Question::text("q").with("x", 7),
        Question::select("q", &[]),
        form(json!([])),
        form(json!({"type": "object", "properties": {}})),
        form(json!({"type": "object", "properties": {}, "required": ["a"]})),
        of(json!({"type": "object"})),
        of(json!({"type": ["string", "null"]})),
        of(json!({"$ref": "#"})),
        of(json!({"type": "string", "format": "password"})),
        of(json!({"type": "integer", "enum": [1]})),
        of(json!({"type": "array", "items": {"type": "string"}})),
        of(json!({"type": "string", "enum": [1]})),
        late,
        never,
        secret,
    ] {
        let (says, call) = asks([only(&json!(true))], false);
        let refused = Questions::default().to(&call).ask(question).await;
        assert!(
            matches!(refused, Err(QuestionError::Invalid(_))),
            "{refused:?}"
        );
        assert!(says.asked.lock().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_default_is_never_the_answer_unless_the_asker_says_so() {
    for (on_timeout, expected) in [(None, None), (Some(json!(true)), Some(json!(true)))] {
        let (_, call) = asks([], false);
        let mut question = Question::confirmation("q").with("default", true);
        question.on_timeout = on_timeout;
        let questions = Questions::default();
        let mut events = questions.events();
        let late = questions.to(&call).ask(question).await;
        assert_eq!(late.as_ref().ok(), expected.map(Answer::Value).as_ref());
        if let Err(error) = late {
            let text = error.to_string();
            assert_eq!(text, "the person did not answer within 60s");
        }
        let names = [(); 2].map(|()| events.try_recv().unwrap().name());
        assert_eq!(names, ["elicitationRequested", "elicitationTimeout"]);
        let count = (QuestionKind::Confirmation, Outcome::TimedOut);
        assert_eq!(questions.counts()[&count], 1);
    }
}

#[tokio::test(start_paused = true)]
async fn only_true_is_a_yes_and_helpers_return_what_they_ask_for() {
    let questions = Questions::default();
    for (reply, yes) in [
        (only(&json!(true)), Some(true)),
        (only(&json!(false)), Some(false)),
        (json!({"action": "decline"}), Some(false)),
        (json!({"action": "cancel"}), None),
        (json!({"action": "yes"}), None),
        (json!([]), None),
    ] {
        let (_, call) = asks([reply], false);
        assert_eq!(questions.to(&call).confirm("q").await.ok(), yes);
    }
    let replies = ["a", "b"].map(|text| only(&json!(text)));
    let (_, call) = asks(replies.into_iter().chain([only(&json!(["b"]))]), false);
    let person = questions.to(&call);
    assert_eq!(person.text("q").await.unwrap(), "a");
    assert_eq!(person.select("q", &["a", "b"]).await.unwrap(), "b");
    assert_eq!(person.multi_select("q", &["a", "b"]).await.unwrap(), ["b"]);
    let (_, call) = asks([accept(&json!({"a": 1}))], false);
    let schema = json!({"type": "object", "properties": {"a": {"type": "integer"}}});
    let form = questions.to(&call).form("q", schema).await.unwrap();
    assert_eq!(Value::Object(form), json!({"a": 1}));
}

#[tokio::test(start_paused = true)]
async fn a_client_is_asked_only_what_it_declares_and_its_revision_has() {
    let of = |declared: &str, version| {
        let (says, mut call) = asks([only(&json!(["a"]))], false);
        let mut inbound = Inbound::new(Transport::Pipe);
        inbound.protocol_version = version;
        let context = call.context_mut();
        context.capabilities = ClientCapabilities::parse(declared.as_bytes());
        context.inbound = Some(Arc::new(inbound));
        (says, call)
    };
    let several = || Question::multi_select("q", &["a"]);
    let questions = Questions::default().with_page("https://x/");
    for (declared, version, question, asked) in [
        (r#"{"elicitation":{}}"#, Some("2025-11-25"), several(), true),
        (
            r#"{"elicitation":{}}"#,
            Some("2025-06-18"),
            several(),
            false,
        ),
        (r#"{"elicitation":{"url":{}}}"#, None, several(), false),
        (r#"{"elicitation":{}}"#, None, Question::secret("q"), false),
    ] {
        let (says, call) = of(declared, version);
        let answer = questions.to(&call).ask(question).await;
        let refused = matches!(answer, Err(QuestionError::Unsupported(_)));
        assert_eq!(
            (answer.is_ok(), refused),
            (asked, !asked),
            "{declared} {answer:?}"
        );
        assert_eq!(!says.asked.lock().is_empty(), asked);
    }
    let alone = questions.to(&call("{}")).confirm("q").await;
    assert!(
        matches!(alone, Err(QuestionError::Unsupported(_))),
        "{alone:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn secrets_and_files_come_by_the_page_and_show_nowhere() {
    for takes_rounds in [false, true] {
        let questions = Questions::default().with_page("https://x/ask/");
        let mut events = questions.events();
        let secret = Question::secret("key?").with("minLength", 8);
        let given = Question::file("f?")
            .with("maxBytes", 4)
            .with("accept", json!(["image/*"]));
        let hunter2 = Answer::Secret(Secret::new("hunter22"));
        for (question, short, full) in [
            (secret, Answer::Secret(Secret::new("hunter2")), hunter2),
            (given.clone(), file("image/png", 5), file("image/png", 4)),
            (given, file("text/html", 1), file("IMAGE/x", 1)),
        ] {
            let (says, call) = asks([json!({"action": "accept"})], takes_rounds);
            let waits = begin(&questions, &call, question);
            settle().await;
            let asked = says.asked.lock().remove(0);
            assert_eq!(asked["mode"], "url");
            let open = questions.pending().remove(0);
            let id = (!takes_rounds).then(|| json!(open.id));
            assert_eq!(asked.get("elicitationId"), id.as_ref());
            assert!(asked.get("requestedSchema").is_none());
            assert!(!waits.is_finished(), "consent is no answer");
            let token = asked["url"]
                .as_str()
                .unwrap()
                .strip_prefix("https://x/ask/")
                .unwrap();
            assert_eq!(token.len(), 32);
            for unknown in ["", open.id.as_str()] {
                let refused = questions.submit(unknown, full.clone());
                assert!(matches!(refused, Err(QuestionError::NotFound)));
            }
            for wrong in [short, Answer::Value(json!("x"))] {
                let refused = questions.submit(token, wrong).unwrap_err();
                assert!(matches!(refused, QuestionError::Unfit(_)));
                assert!(!refused.to_string().contains("hunter"), "{refused}");
            }
            questions.submit(token, full.clone()).unwrap();
            let twice = questions.submit(token, full.clone());
            assert!(matches!(twice, Err(QuestionError::NotFound)));
            assert_eq!(waits.await.unwrap().unwrap(), full);
            let shown = format!("{:?} {full:?} {open:?} {questions:?}", events.try_recv());
            let shown = format!("{shown}{:?}{}", events.try_recv(), json!(open));
            assert!(
                !shown.contains("hunter") && !shown.contains(token),
                "{shown}"
            );
        }
        // the third answer that does not fit ends it
        let (says, call) = asks([json!({"action": "accept"})], takes_rounds);
        let waits = begin(
            &questions,
            &call,
            Question::secret("q").with("minLength", 8),
        );
        settle().await;
        let asked = says.asked.lock().remove(0);
        let token = &asked["url"].as_str().unwrap()["https://x/ask/".len()..];
        for _ in 0..3 {
            assert!(
                questions
                    .submit(token, Answer::Secret(Secret::new("x")))
                    .is_err()
            );
        }
        assert!(matches!(waits.await.unwrap(), Err(QuestionError::Unfit(_))));
    }
    let (says, call) = asks([], false);
    let nowhere = Questions::default().to(&call).secret("q").await;
    assert!(
        matches!(nowhere, Err(QuestionError::Unsupported(_))),
        "{nowhere:?}"
    );
    assert!(says.asked.lock().is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_handler_answers_in_the_place_of_the_client() {
    let tries = Arc::new(Mutex::new(0));
    let questions = Questions::default().with_handler(move |question| {
        *tries.lock() += 1;
        let first = *tries.lock() == 1;
        async move {
            match question.kind() {
                QuestionKind::Secret if first => Ok(Answer::Value(json!("hunter2"))),
                QuestionKind::Secret => Ok(Answer::Secret(Secret::new("hunter2"))),
                QuestionKind::File => Ok(file("text/plain", 1)),
                _ => Err(QuestionError::Declined),
            }
        }
    });
    let (says, call) = asks([], false);
    let person = questions.to(&call);
    assert_eq!(person.secret("q").await.unwrap().expose(), "hunter2");
    assert_eq!(person.file("q").await.unwrap().content.len(), 1);
    assert!(!person.confirm("q").await.unwrap());
    assert!(says.asked.lock().is_empty() && call.has_asked());
}

#[tokio::test(start_paused = true)]
async fn open_questions_are_bounded_listed_and_cancelled() {
    let bounds = Bounds {
        of_principal: 2,
        in_all: 3,
    };
    let questions = Questions::default().with_bounds(bounds);
    let (_, ada) = asks([], false);
    let bob = ada.clone().with_caller(by("bob"));
    let mut waits = Vec::new();
    for (call, fits) in [
        (&ada, true),
        (&ada, true),
        (&ada, false),
        (&bob, true),
        (&bob, false),
    ] {
        let asked = begin(&questions, call, Question::text("who?"));
        settle().await;
        match fits {
            true => waits.push(asked),
            false => assert!(matches!(
                asked.await.unwrap(),
                Err(QuestionError::TooMany(_))
            )),
        }
    }
    let open = questions.pending();
    let principals: Vec<_> = open.iter().map(|it| it.principal.as_str()).collect();
    assert_eq!(principals.iter().filter(|it| **it == "ada").count(), 2);
    assert!(
        open.iter()
            .all(|it| it.message == "who?" && it.kind == QuestionKind::Text)
    );
    let mut events = questions.events();
    for one in &open {
        assert!(questions.cancel(&one.id));
        assert!(!questions.cancel(&one.id));
    }
    for asked in waits {
        assert!(matches!(
            asked.await.unwrap(),
            Err(QuestionError::Cancelled)
        ));
    }
    assert_eq!(events.try_recv().unwrap().name(), "elicitationCancelled");
    assert!(questions.pending().is_empty());
}

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
