//! What holds for any hints, any tool and any server.

mod any;
mod merge;
mod monotone;
mod precedence;
mod style;
mod wire;
