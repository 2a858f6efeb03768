//! What is served beyond its lifetime, what an answer says of its own, and how both are checked.

mod hints;
mod if_error;
mod learned;
mod revalidate;
