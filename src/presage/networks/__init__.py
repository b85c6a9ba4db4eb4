"""Networks: from standardized values and masks to edge logits."""
