//! Everything over real connections on the loopback.
