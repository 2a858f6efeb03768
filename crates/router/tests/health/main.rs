//! What a router does about servers that are sick, away or new.

mod away;
mod bed;
mod ejection;
mod joining;
mod outcomes;
mod panic;
