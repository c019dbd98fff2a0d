"""A server for trained models: HTTP with batches across requests, and a page to play on."""
