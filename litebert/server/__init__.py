"""An HTTP server for trained models, with batching across requests and a playground page."""
