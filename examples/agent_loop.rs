//! An agent loop over a toolset: the model picks calls, reads run at the same time, and a call that
//! keeps failing is answered in the tool's place. The model is a script, so that anyone can run
//! it. `cargo run --example agent_loop`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use callward::{Caller, Principal, SessionId, Stack, ToolOutput, ToolSpec, Tools};
use futures_util::future::join_all;
use serde_json::{Value, json};

/// A model that never comes to an end is stopped.
const MAX_TURNS: usize = 12;

/// What a model wants next.
enum Turn {
    Call(Vec<(&'static str, Value)>),
    Say(String),
}

/// Stands for a model: it is shown the tools once, and the answers to each of its calls.
struct Script {
    turn: usize,
    held_back: bool,
}

impl Script {
    fn next(&mut self, answers: &[ToolOutput]) -> Turn {
        self.turn += 1;
        let texts: Vec<_> = answers.iter().map(ToolOutput::to_text).collect();
        self.held_back |= texts.iter().any(|text| text.starts_with("Not sent"));
        let book = ("travel.book_hotel", json!({"city": "Rome", "nights": 2}));
        match self.turn {
            // several calls of one turn: the same read twice is one look at the server
            1 => Turn::Call(vec![
                ("travel.get_weather", json!({"city": "Rome"})),
                ("travel.get_weather", json!({"city": "Oslo"})),
                ("travel.get_weather", json!({"city": "Rome"})),
            ]),
            // a model that does not learn from an error asks again and again
            _ if !self.held_back => Turn::Call(vec![book]),
            _ if !texts.iter().any(|text| text.contains("hostel")) => Turn::Call(vec![(
                "travel.book_hostel",
                json!({"city": "Rome", "nights": 2}),
            )]),
            _ => Turn::Say(format!("Rome it is: {}", texts.join(", "))),
        }
    }
}

fn travel(looked: &'static AtomicU32) -> Result<Tools, Box<dyn Error>> {
    let stay = ToolSpec::new("book_hostel").description("Books a bed in a hostel");
    Ok(Tools::new("travel")?
        .tool(
            ToolSpec::new("get_weather").description("Returns the weather of a city"),
            move |asked: Value| async move {
                looked.fetch_add(1, Ordering::Relaxed);
                let degrees = if asked["city"] == "Rome" { 24 } else { 3 };
                Ok::<_, String>(format!("{degrees} °C"))
            },
        )?
        .tool(
            ToolSpec::new("book_hotel").description("Books a hotel"),
            |_: Value| async { Err::<String, _>("the hotel is full") },
        )?
        .tool(stay, |_: Value| async { Ok::<_, String>("hostel booked") })?)
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    static LOOKED: AtomicU32 = AtomicU32::new(0);
    let stack = Stack::builder().server(travel(&LOOKED)?).build().await?;

    println!("tools:");
    for entry in stack.catalogue().entries() {
        let effect = entry.tool().plan().effect;
        println!("  {:14} {effect}", entry.tool().name());
    }
    let mut model = Script {
        turn: 0,
        held_back: false,
    };
    // one conversation: the loop guard counts what fails in each by itself
    let session = SessionId::new("conversation 1");
    let caller = Arc::new(Caller::new(Principal::new("ada")).with_session(session));
    let mut answers = Vec::new();
    for _ in 0..MAX_TURNS {
        let calls = match model.next(&answers) {
            Turn::Call(calls) => calls,
            Turn::Say(text) => {
                println!("\nmodel: {text}");
                break;
            }
        };
        println!();
        answers.clear();
        let running = calls.iter().map(async |(tool, arguments)| {
            let call = stack.prepare(tool, arguments.to_string())?;
            stack.run(call.with_caller(caller.clone())).await
        });
        for ((tool, arguments), reported) in calls.iter().zip(join_all(running).await) {
            // a failure is an answer too: the model is to know, and to choose what to do
            let answer = reported.unwrap_or_else(|error| ToolOutput::error_text(error.to_string()));
            println!(
                "{tool} {arguments}\n  {}",
                answer.to_text().replace('\n', "\n  ")
            );
            answers.push(answer);
        }
    }
    println!(
        "the weather was looked up {} times",
        LOOKED.load(Ordering::Relaxed)
    );
    Ok(())
}
