//! Tool servers that fail by a script or a seed, and count their executions.
//!
//! Only the server can see that a call is never executed twice. These servers count the executions
//! of each call in a [`Ledger`], by an identity in its arguments (`"call": 17`). [`Chaos`] decides
//! which [`Fault`] a call meets. [`ChaosServer`] is such a server in memory, on tokio's clock;
//! [`Engine`] drives servers with other transports.
//!
//! ```
//! use callward::{Server, Stack, ToolDefinition};
//! use callward_chaos::{Break, Chaos, ChaosServer, Fault, Ledger};
//!
//! # #[tokio::main(flavor = "current_thread", start_paused = true)]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! let ledger = Ledger::new();
//! let pay = ToolDefinition::from_json(r#"{"name":"pay","inputSchema":{"type":"object"}}"#)?;
//! let chaos = Chaos::script(vec![Some(Fault::LoseReply { sent: 0, broken: Break::Reset })]);
//! let server = ChaosServer::new("bank".parse()?, vec![pay], chaos, ledger.clone());
//! let stack = Stack::builder().server(Server::new(server)).build().await?;
//! let error = stack.call("bank.pay", serde_json::json!({"call": 17})).await.unwrap_err();
//! assert_eq!(error.kind, callward::ErrorKind::OutcomeUnknown);
//! assert_eq!(ledger.of(17).executions, 1);
//! # Ok(())
//! # }
//! ```

mod engine;
mod fault;
mod ledger;
mod memory;
mod plan;

pub use engine::{Engine, Running, Turn};
pub use fault::{Break, Fault, Refusal};
pub use ledger::{Count, Ledger, identity};
pub use memory::ChaosServer;
pub use plan::Chaos;
