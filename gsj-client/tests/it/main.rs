//! The client against servers that answer, refuse, break off and go away.

mod calls;
mod collecting;
mod server;
mod waiting;
