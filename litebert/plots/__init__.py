"""Pictures: curves of runs, which labels are confused, what answering early costs, and charts that live in a page."""
