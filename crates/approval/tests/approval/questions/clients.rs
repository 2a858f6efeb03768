//! Whom a question reaches: a client, a page or a handler; and what stays open.

use callward_approval::Bounds;
use callward_approval::questions::{QuestionKind, Secret};
use callward_core::{Inbound, Transport};

use crate::bed::{by, settle};

use super::*;

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
            assert_eq!(questions.at(token).as_ref(), Some(&open));
            assert!(questions.to(&call).has_page());
            for unknown in ["", open.id.as_str()] {
                assert!(questions.at(unknown).is_none());
                let refused = questions.submit(unknown, full.clone());
                assert!(matches!(refused, Err(QuestionError::NotFound)));
            }
            for wrong in [short, Answer::Value(json!("x"))] {
                let refused = questions.submit(token, wrong).unwrap_err();
                assert!(matches!(refused, QuestionError::Unfit(_)));
                assert!(!refused.to_string().contains("hunter"), "{refused}");
            }
            questions.submit(token, full.clone()).unwrap();
            assert!(questions.at(token).is_none(), "it is answered");
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
    assert!(!Questions::default().to(&call).has_page());
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
