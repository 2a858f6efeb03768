//! What holds for any hints, any tool and any server.

pub(crate) mod any;
mod monotone;
mod precedence;
mod style;
mod wire;
