//! The MCP retrieval service over a corpus: nothing after the timestep.
