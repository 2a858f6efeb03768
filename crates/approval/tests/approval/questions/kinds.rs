//! Each kind of question: its schema, and which answers fit.

use std::time::Duration;

use callward_approval::questions::{Outcome, QuestionKind};

use super::*;

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
