//! Questions to the person at the client: confirmations, texts, choices, forms, files and secrets.
//!
//! [`Questions`] asks by MCP elicitation, in both protocol eras, or a [handler] of this process.
//! Every answer is checked against its question; one that does not fit is refused with the reason,
//! and the person is asked again, twice at most. Secrets and files never travel in forms: the
//! client gets the URL of a [page], and the page passes the answer on.
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
