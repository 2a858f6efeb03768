//! Servers that lose replies, and count what they ran: naive repeats run writes twice, the stack
//! never does. `cargo run --example safe_retries`.
#![expect(clippy::print_stdout, reason = "an example prints")]

use std::error::Error;
use std::time::Duration;

use callward::{
    ErrorKind, ReplicaSetId, Server, Stack, StackBuilder, ToolCall, ToolDefinition, ToolError,
    ToolOutput, ToolServer,
};
use callward_chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
use serde_json::json;

const CALLS: u64 = 300;
const TRIES: usize = 4;

/// One of two servers of a bank, whose reply is lost after one call of ten: what was asked for has
/// happened by then.
fn bank(id: &str, ledger: &Ledger) -> Result<ChaosServer, Box<dyn Error>> {
    let tools = [
        r#"{"name":"get_balance","inputSchema":{"type":"object"}}"#,
        r#"{"name":"send_money","inputSchema":{"type":"object"}}"#,
    ];
    let tools = tools.map(ToolDefinition::from_json).into_iter();
    let lost = Fault::LoseReply {
        sent: 0,
        broken: Break::Reset,
    };
    let chaos = Chaos::seeded(id.len() as u64).with_share(100).with(1, lost);
    let tools = tools.collect::<Result<_, _>>()?;
    Ok(ChaosServer::new(id.parse()?, tools, chaos, ledger.clone()))
}

/// What callers heard, and what the bank did.
#[derive(Default)]
struct Tally {
    answered: u64,
    unknown: u64,
    failed: u64,
    said: Option<String>,
}

impl Tally {
    fn add(&mut self, answer: &Result<ToolOutput, ToolError>) {
        match answer {
            Ok(_) => self.answered += 1,
            Err(error) if error.kind == ErrorKind::OutcomeUnknown => {
                self.unknown += 1;
                self.said.get_or_insert_with(|| error.to_string());
            }
            Err(_) => self.failed += 1,
        }
    }

    fn print(&self, who: &str, tool: &str, ledger: &Ledger) {
        let twice: u64 = (0..CALLS)
            .map(|call| ledger.of(call).executions.saturating_sub(1))
            .sum();
        let (tool, runs) = (tool.trim_start_matches("bank."), ledger.total().executions);
        let Self {
            answered,
            unknown,
            failed,
            said,
        } = self;
        println!("{who:8} {tool:12} {answered:8} {unknown:8} {failed:7} {runs:11} {twice:14}");
        if let Some(said) = said {
            println!("\nwhat a caller hears whose call may have run:\n  {said}");
        }
    }
}

/// Sends a call until it is answered, whatever it is: what retry layers do that know no tools.
async fn until_answered(bank: &[ChaosServer; 2], call: ToolCall) -> Result<ToolOutput, ToolError> {
    let mut answer = bank[0].call(call.clone()).await;
    for server in bank.iter().cycle().skip(1).take(TRIES - 1) {
        if answer.is_err() {
            answer = server.call(call.clone()).await;
        }
    }
    answer
}

// on a paused clock: the pauses between calls and before repeats take no time
#[tokio::main(flavor = "current_thread", start_paused = true)]
async fn main() -> Result<(), Box<dyn Error>> {
    // what the pauses are drawn from
    fastrand::seed(1);
    println!("{CALLS} calls each; one reply of ten is lost, after the call ran\n");
    println!("who      tool         answered  unknown  failed  executions  twice or more");
    let set: ReplicaSetId = "bank".parse()?;
    for tool in ["bank.get_balance", "bank.send_money"] {
        for who in ["naive", "callward"] {
            let ledger = Ledger::new();
            let bank = [bank("main", &ledger)?, bank("second", &ledger)?];
            let servers = bank
                .clone()
                .map(|server| Server::new(server).in_set(set.clone()));
            let stack = servers
                .into_iter()
                .fold(Stack::builder(), StackBuilder::server);
            let stack = stack.build().await?;
            let mut tally = Tally::default();
            for number in 0..CALLS {
                let call = stack.prepare(tool, json!({"call": number}).to_string())?;
                tally.add(&match who {
                    "naive" => until_answered(&bank, call).await,
                    _ => stack.run(call).await,
                });
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            tally.print(who, tool, &ledger);
        }
    }
    Ok(())
}
