//! Running one command where it can reach nothing but two sockets.
