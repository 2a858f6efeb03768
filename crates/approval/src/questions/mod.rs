//! Questions to the person at the client: confirmations, texts, choices, forms, files and secrets.
//!
//! [`Questions`] asks by MCP elicitation, in both protocol eras, or a [handler] of this process.
//! Every answer is checked against its question; one that does not fit is refused with the reason,
//! and the person is asked again, twice at most. Secrets and files never travel in forms: the
//! client gets the URL of a [page], and the page passes the answer on.
//!
//! ```
//! use std::sync::Arc;
//!
//! use bytes::Bytes;
//! use callward_approval::questions::Questions;
//! use callward_core::{
//!     BoxFuture, CallClient, ClientCapabilities, ClientMethod, ClientPeer, ClientRefusal, ToolCall,
//! };
//!
//! /// A client whose person says yes.
//! struct Agrees;
//!
//! impl ClientPeer for Agrees {
//!     fn ask(
//!         &self,
//!         _: ClientMethod,
//!         _: Bytes,
//!     ) -> BoxFuture<'static, Result<Bytes, ClientRefusal>> {
//!         let answer = r#"{"action": "accept", "content": {"answer": true}}"#;
//!         Box::pin(async move { Ok(Bytes::from(answer)) })
//!     }
//! }
//!
//! # async fn example(mut call: ToolCall) -> Result<(), Box<dyn std::error::Error>> {
//! let context = call.context_mut();
//! context.client = Some(CallClient::new(Arc::new(Agrees), false));
//! context.capabilities = ClientCapabilities::parse(br#"{"elicitation": {}}"#);
//!
//! let questions = Questions::default();
//! assert!(questions.to(&call).confirm("Delete order 7?").await?);
//! # Ok(())
//! # }
//! # let tool = callward_core::Tool::mutating("delete_order").unwrap();
//! # let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
//! # runtime.block_on(example(ToolCall::new(tool, "{}"))).unwrap();
//! ```
//!
//! [handler]: Questions::with_handler
//! [page]: Questions::with_page

mod answer;
mod error;
mod manager;
mod person;
mod question;
mod schema;

pub use answer::{Answer, Secret, Upload};
pub use error::{Event, Outcome, QuestionError};
pub use manager::{Pending, Questions};
pub use person::Person;
pub use question::{Question, QuestionKind};
