//! Tool servers that fail as they are told to, and count what they ran.
//!
//! That a call is never executed twice can only be seen at the server. So these servers count the
//! executions of each call, by an identity that the caller puts into the arguments (`"call": 17`):
//! whatever a runtime does on the way, repeats or hides, the [`Ledger`] knows what happened.
//!
//! [`Chaos`] says which [`Fault`] meets which call: a script, or a draw from a seed that is the same
//! each time. Faults stand at every point of an exchange: before the connection, within the request,
//! between the effect and the answer, within the answer, and after the caller has given up.
//!
//! The same chaos comes in two forms: [`ChaosServer`], in memory and on tokio's clock, for as many
//! calls as one likes; and, for what only sockets and pipes can do, [`http`] and [`pipe`]. A [`peer`]
//! answers with any bytes, for what no server should do.
//!
//! ```
//! use serde_json::json;
//! use callward::{Server, Stack, ToolDefinition};
//! use callward_chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ledger = Ledger::new();
//! let pay = ToolDefinition::from_json(r#"{"name":"pay","inputSchema":{"type":"object"}}"#)?;
//! let lost = Fault::LoseReply { sent: 0, broken: Break::Reset };
//! let chaos = Chaos::script(vec![Some(lost)]);
//! let server = ChaosServer::new("bank".parse()?, vec![pay], chaos, ledger.clone());
//! let stack = Stack::builder().server(Server::new(server)).build().await?;
//!
//! let told = stack.call("bank.pay", json!({"call": 17})).await.unwrap_err();
//! assert_eq!(told.kind(), callward::ErrorKind::OutcomeUnknown);
//! assert_eq!(ledger.of(17).executions, 1);
//! # Ok(())
//! # }
//! ```

mod events;
mod exchange;
mod fault;
pub mod http;
mod ledger;
mod memory;
pub mod peer;
mod pending;
pub mod pipe;
mod plan;
mod protocol;

pub use fault::{Break, Fault, Refusal};
pub use ledger::{Count, Ledger};
pub use memory::ChaosServer;
pub use plan::Chaos;
pub use protocol::Era;
