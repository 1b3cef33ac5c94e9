"""New centroids from assigned points."""
