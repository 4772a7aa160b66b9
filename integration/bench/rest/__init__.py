"""What the REST interface costs and how fast it is, beside Flink's."""
