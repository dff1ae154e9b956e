//! Sessions from queue to result: state, artifacts, rollout API.
