int value;
	int other;
